"""Files that lists and searches are collected into."""

from enum import StrEnum


class FileFormat(StrEnum):
    """What a file of records looks like."""

    #: one record a line, as JSON (https://github.com/ndjson/ndjson-spec)
    NDJSON = "ndjson"
    #: RFC 4180, with a header
    CSV = "csv"
