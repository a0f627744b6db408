"""Leaves an application's own text out of errors where policies redact members: it may repeat their values. Pure."""

import re
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from copy import copy
from dataclasses import replace

from gateway.errors import GatewayError

#: what stands in place of the text
LEFT_OUT = "(left out, because policies redact members of these records)"
#: a code of an error, or names of members: neither is a value of a record
_CODE = re.compile(r"[A-Za-z][\w.:/-]{0,99}|\d{1,6}")
_NAMES = re.compile(r"[A-Za-z_][\w.\[\]/-]{0,99}(?:, [A-Za-z_][\w.\[\]/-]{0,99})*")


@contextmanager
def withheld(redact: Collection[str]) -> Iterator[None]:
    """Within the block errors have no text of the application, if policies redact members of its records."""
    try:
        yield
    except GatewayError as error:
        if redact and error.upstream is not None:
            raise without_text(error) from error
        raise


def without_text(error: GatewayError) -> GatewayError:
    """A copy of an error without the application's text: the status, a code and the names of members stay."""
    fault = error.upstream
    if fault is None:
        return error
    code = fault.code if fault.code is None or _CODE.fullmatch(fault.code) else None
    field = fault.field if fault.field is None or _NAMES.fullmatch(fault.field) else None
    texts = {fault.message, *({fault.code} - {code}), *({fault.field} - {field})}
    changed = copy(error)
    for text in sorted(filter(None, texts), key=len, reverse=True):
        changed.detail = changed.detail.replace(text, LEFT_OUT)
    changed.args = (changed.detail,)
    changed.upstream = replace(fault, code=code, message=None, field=field)
    return changed
