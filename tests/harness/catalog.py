"""The shipped kinds, read once: they are the same for every test, and nothing changes them."""

from functools import cache

from gateway.kinds.catalog import Catalog
from gateway.kinds.loading import load_catalog
from gateway.kinds.spec import ConnectorSpec
from gateway.upstream.requests import checked_environment


@cache
def shipped_catalog() -> Catalog:
    return load_catalog()


def example_environment(spec: ConnectorSpec) -> dict[str, str]:
    """The variables of a kind's server as in the examples of its spec."""
    named = {name: variable for name, variable in spec.environment.items() if f"{{{name}}}" in spec.server}
    examples = {name: variable.example for name, variable in named.items() if variable.example}
    return checked_environment(spec, examples)
