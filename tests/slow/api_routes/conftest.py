"""Fixtures of the routes, for those that start processes."""

from tests.unit.api_routes.conftest import app, ask, ask_as, empty_workspace, pets, studio, train

__all__ = ["app", "ask", "ask_as", "empty_workspace", "pets", "studio", "train"]
