"""The names of rules: Python functions for requests that specs cannot describe. Packages add rules by entry point.

```toml
[project.entry-points."gateway.rules"]
parcel_signature = "parcels.rules:SIGNATURE"
```
"""

from collections.abc import Mapping
from functools import cache
from importlib.metadata import EntryPoint, entry_points

#: the rules of `gateway.upstream.rules`
RULE_NAMES = (
    "list_records",
    "one_statement",
    "property_names",
    "query_page",
    "query_page_of_200",
    "resource_names",
    "search_conditions",
)
#: the entry points whose objects are a `Rule` or a `LongRule`
GROUP = "gateway.rules"


@cache
def package_rules() -> Mapping[str, EntryPoint]:
    """The rules of installed packages by name, not loaded yet; the gateway's own names cannot be replaced."""
    return {each.name: each for each in entry_points(group=GROUP) if each.name not in RULE_NAMES}


def known_rules() -> tuple[str, ...]:
    """Every value that `rule` may have in a spec."""
    return (*RULE_NAMES, *package_rules())
