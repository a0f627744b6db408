"""The kinds that ship, and the stand-in for their authorization servers."""

from tests.connectors.consent.conftest import catalog, server  # noqa: F401 - fixtures
