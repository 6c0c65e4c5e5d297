"""REST API of the studio."""

from ziggurat.api.app import create_app
from ziggurat.server.permissions import anyone, identity_of, new_router, require
from ziggurat.server.serving import StudioServer

__all__ = ["StudioServer", "anyone", "create_app", "identity_of", "new_router", "require"]
