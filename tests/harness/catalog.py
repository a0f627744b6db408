"""The shipped kinds, loaded once for all tests, which do not change them."""

from functools import cache

from gateway.kinds.catalog import Catalog
from gateway.kinds.loading import load_catalog
from gateway.kinds.spec import ConnectorSpec
from gateway.upstream.requests import checked_environment


@cache
def shipped_catalog() -> Catalog:
    return load_catalog()


def example_environment(spec: ConnectorSpec) -> dict[str, str]:
    """The variables of a kind, with the values in the examples of its spec, without those that change the server."""
    named = {name: variable for name, variable in spec.environment.items() if name not in spec.server_with}
    examples = {name: variable.example for name, variable in named.items() if variable.example}
    return checked_environment(spec, examples)
