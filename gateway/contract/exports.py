"""Files that lists and searches are collected into."""

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
    #: CSV with a byte order mark, which Excel needs to read UTF-8
    CSV_BOM = "csv-bom"

    @property
    def extension(self) -> str:
        """The end of the file's name."""
        return self.partition("-")[0]


class OutputView(Struct, frozen=True):
    """A file that a list or search is collected into."""

    file: Annotated[FileFormat, member("The format of the file.", "csv")]
