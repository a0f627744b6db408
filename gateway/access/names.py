"""Names that administrators give to policies and budgets."""

import re

from gateway.errors import FieldError, InvalidParams, NotFound

_NAME = re.compile(r"[a-z0-9][a-z0-9._-]{0,99}")


def require_name(name: str) -> None:
    """Raise InvalidParams for a name that cannot be given."""
    if not _NAME.fullmatch(name):
        message = f"the name is {name!r}; it has 1 to 100 lower-case letters, digits, points, - and _"
        raise InvalidParams(faults=[FieldError("/name", "name", "pattern", message)])


def require_possible(name: str, what: str) -> None:
    """Raise NotFound for a name that nothing can have, which may hold characters that PostgreSQL refuses."""
    if not _NAME.fullmatch(name):
        raise NotFound(f"there is no {what} {name!r}")
