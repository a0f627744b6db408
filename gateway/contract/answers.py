"""The responses of `execute` and of a job's result, and the `result` of searches and downloads."""

from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Literal

from msgspec import Struct
from msgspec import field as struct_field

from gateway.contract.members import ID, Time, member


class SearchMetaView(Struct, frozen=True, kw_only=True):
    """The page of a search, and the state of the synchronized copy."""

    has_more: Annotated[bool, member("Whether there is a next page.", False)]
    cursor: Annotated[str | None, member("`cursor` of the call for the next page.")]
    took_ms: Annotated[int, member("Duration of the search in milliseconds.", 4)]
    as_of: Annotated[Time | None, member("When the copy was last synchronized.")]
    total_synced: Annotated[int, member("The number of records in the copy.", 1204)]
    synchronized: Annotated[bool, member("Whether the copy was ever loaded.", True)]
    complete: Annotated[bool, member("Whether the copy has all records as of `as_of`.", True)]


class SearchResultView(Struct, frozen=True):
    """`result` of `context_store_search`."""

    data: Annotated[list[dict[str, Any]], member("The records of this page.", [{"id": 1, "status": "open"}])]
    meta: Annotated[SearchMetaView, member("The page and the copy.")]


class FileChunkView(Struct, frozen=True, kw_only=True):
    """`result` of a download in JSON: a part of the file."""

    content: Annotated[str, member("The bytes.", "SGVsbG8=")]
    encoding: Annotated[Literal["base64", "utf-8"], member("The encoding of `content`.")]
    bytes_returned: Annotated[int, member("The number of bytes.", 5)]
    range_requested: Annotated[str, member("The range of the file.", "bytes=0-49151")]
    next_range_header: Annotated[str | None, member("`range_header` of the call for the next chunk; null at the end.")]
    has_more: Annotated[bool, member("Whether there is a next chunk.", False)]
    content_type: Annotated[str | None, member("The file's media type.", "text/plain")]


class ExecutionView(Struct, frozen=True):
    """The connector, duration and request id of a call."""

    connector_instance_id: Annotated[str | None, member("The connector; null for a job without a connector.", ID)]
    execution_time_ms: Annotated[int, member("Duration of the call in milliseconds.", 41)]
    request_id: Annotated[str, member("The request's id.", "5e1f0c3d")]


class Answer(Struct, frozen=True, omit_defaults=True, kw_only=True):
    """The response of an operation."""

    status: Annotated[Literal["success"], member("Always `success`.")] = struct_field(default_factory=lambda: "success")
    result: Annotated[
        Any,
        member(
            "The records of a list or search; the record of a get, create or update; with `dry_run` the requests.",
            [{"id": 1, "subject": "The printer is on fire"}],
        ),
    ]
    next: Annotated[
        Mapping[str, Any] | None,
        member("Of lists and searches: the params of the call for the next page; null on the last page.", {"page": 2}),
    ] = None
    incomplete: Annotated[
        str | None,
        member("Of lists: why records are missing or may be missing, and what to do; null `next` is then not the end."),
    ] = None
    redacted: Annotated[
        Sequence[str], member("The members that policies leave out of the records, as paths.", ["email", "*.phone"])
    ] = ()
    warning: Annotated[
        str | None,
        member("What is wrong with the result of a call that was carried out, or why it was not checked."),
    ] = None
    meta: Annotated[
        Mapping[str, Any] | None,
        member("Members of the application's response beside its records.", {"next_page": None, "count": 1}),
    ] = struct_field(name="connector_metadata")
    execution: Annotated[ExecutionView | None, member("Connector, duration and request id.")] = struct_field(
        default=None, name="execution_metadata"
    )
    dry_run: Annotated[bool, member("Whether `result` has the requests of a dry run.", False)] = False

    @property
    def records(self) -> list[Any]:
        """The result as records, whether it is a list, a search or a single record."""
        if isinstance(self.result, dict):
            for name in ("data", "searchRecords"):
                if isinstance(self.result.get(name), list):
                    return list(self.result[name])
        return self.result if isinstance(self.result, list) else [self.result]


class PageAnswer(Answer, frozen=True, omit_defaults=True, kw_only=True):
    """The response of a list or search, which has `next` even when it is null."""

    next: Mapping[str, Any] | None
