"""The shipped kinds, read once: they are the same for every test, and nothing changes them."""

from functools import cache

from gateway.kinds.catalog import Catalog
from gateway.kinds.loading import load_catalog


@cache
def shipped_catalog() -> Catalog:
    return load_catalog()
