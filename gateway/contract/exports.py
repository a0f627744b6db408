"""Files that lists and searches are collected into."""

import re
from enum import StrEnum
from typing import Annotated

from msgspec import Struct

from gateway.contract.members import member


class FileFormat(StrEnum):
    """The format of a file of records."""

    #: one JSON record per line (https://github.com/ndjson/ndjson-spec)
    NDJSON = "ndjson"
    #: RFC 4180, with a header
    CSV = "csv"


class OutputView(Struct, frozen=True):
    """A file that a list or search is collected into."""

    file: Annotated[FileFormat, member("The format of the file.", "csv")]


#: the beginning of a formula (https://owasp.org/www-community/attacks/CSV_Injection) where a spreadsheet may begin a
#: cell: at the cell's own beginning, and after a line end or `;`, which separates cells in many countries. There `- `
#: and `+ ` are items of a list in a text.
_FORMULA = re.compile(
    r"\A(?=[=+@\t\r\n\uff1d\uff0b\uff0d\uff20-])|(?<=[;\r\n])(?=[=@\uff1d\uff0b\uff0d\uff20]|[+-](?! ))"
)


def guarded(text: str) -> str:
    """The text with `'` before each place at which a spreadsheet may read a formula."""
    return _FORMULA.sub("'", text)
