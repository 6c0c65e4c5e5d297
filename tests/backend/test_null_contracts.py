"""The nine contracts on the backend without a framework."""

from tests.nine_contracts import NineContracts


class TestNull(NineContracts):
    name = "null"
