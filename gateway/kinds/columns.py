"""The most informative members of records, which tables show first. Pure."""

#: these come first, in this order; the others stay in the application's order
_FIRST = ("id", "gid", "key", "status", "name", "title", "subject", "email", "text", "priority", "updated_at")


def weight(name: str) -> int:
    """The place of a member among columns: lower comes first."""
    return _FIRST.index(name.lower()) if name.lower() in _FIRST else len(_FIRST)
