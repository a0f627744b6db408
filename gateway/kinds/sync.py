"""Models of synchronization: the lists that copies are read from, and the fields that a search may name."""

from typing import Any, Literal

from pydantic import Field

from gateway.kinds.members import Identifier, JsonPath, Model
from gateway.kinds.requests import RequestSpec


class SyncRead(RequestSpec):
    """A list that the synchronizer reads: its request, constant params and paging style."""

    #: the path of the list of records in the response
    records: JsonPath
    #: constant params. In texts, `{since}` is the time from which changes are requested; `{fields}` is the search
    #: fields and `{properties}` those below `properties`, both separated by commas
    params: dict[str, Any] = Field(default_factory=dict)
    #: seconds between two requests, if the application limits this list more than others
    request_interval: float = Field(0, ge=0)


class LogPosition(Model):
    """The read that returns the present position in the application's log of changes."""

    #: the operation, such as `profile.get`
    operation: str = Field(pattern=r"^\w+\.\w+$")
    #: the path of the position in its record
    value: JsonPath


class Incremental(Model):
    """How the synchronizer requests the changes since its last read."""

    #: `modified`: a param, or `{since}` in a text, has the time from which changes are requested. `newest_first`: the
    #: list is read down to that time. `cursor`: the application's cursor continues from one synchronization to the
    #: next. `end_time`: each response has the time of the next request. `window`: a search with a maximum number of
    #: results is repeated from the last time that it returned. `log`: the application's log of changes is read from the
    #: position that `start` returned before the last full synchronization, or the last response
    style: Literal["modified", "newest_first", "cursor", "end_time", "window", "log"]
    #: the param with the time, or with the position in the log
    param: str | None = None
    #: the position in the log
    start: LogPosition | None = None
    #: the Meta member with the position after the last page of the log
    position: str | None = None
    #: the format of times in requests
    format: Literal["iso", "seconds", "milliseconds"] = "iso"
    #: the member of a record that holds the time of its change
    field: JsonPath | None = None
    #: the Meta member that is true on the last page
    end: str | None = None
    #: seconds before the last synchronization that are read again, because clocks differ and changes may appear late
    overlap: int = Field(120, ge=0)
    #: minimum seconds between a time in a request and the present
    lag: int = Field(0, ge=0)


class Parent(Model):
    """The parent entity of a list that is read once for each parent record."""

    entity: Identifier
    #: param → the member of the parent that fills it
    params: dict[str, JsonPath]
    #: members that records get from their parent: name → the parent's member
    add_fields: dict[str, JsonPath] = Field(default_factory=dict)
    #: members that select the parents to read; `*` is any value
    where: dict[str, Any] = Field(default_factory=dict)
    #: whether changes occur only below parents that changed themselves
    only_changed: bool = False
    #: whether ids are unique only below one parent
    scopes_ids: bool = False
    #: the member that is true if a record has records below it; the list is then read with that record's id too
    recurse_field: str | None = None
    #: records that are not read so, although `recurse_field` is true: member → values
    recurse_except: dict[str, tuple[str, ...]] = Field(default_factory=dict)


class Sync(SyncRead):
    """How the gateway copies the records of an entity and keeps the copy up to date."""

    incremental: Incremental | None = None
    parent: Parent | None = None
    #: another list for changes, if the full list cannot filter by them; members that its records lack keep their values
    changes: SyncRead | None = None
    #: the list of deleted records
    deletions: SyncRead | None = None
    #: members that mark a record as deleted
    deleted_when: dict[str, Any] = Field(default_factory=dict)
    #: further members of records: name → its path within the record
    add_fields: dict[str, JsonPath] = Field(default_factory=dict)
    #: paths in a record that are never stored, such as URLs that are signed for a minute
    excluded_fields: tuple[JsonPath, ...] = ()
    #: whether records that the application no longer lists stay in the copy
    retain_unlisted: bool = False
    #: for lists that may omit records: the param of `get` that takes a record's id. A record missing from the list is
    #: read by id, and deleted from the copy only if it is not found
    verify_param: str | None = None
    #: params with which `get` reads a record, if they differ from those of the list
    get_params: dict[str, Any] = Field(default_factory=dict)
    #: members of records that the list never shows; these records stay in the copy
    unlisted_when: dict[str, Any] = Field(default_factory=dict)
    #: a Python function of `gateway.context_store.sync.transforms` that makes search documents from records
    transform: (
        Literal["associated_ids", "changed_threads", "comment_events", "message_time", "numeric_ids", "property_list"]
        | None
    ) = None
    #: seconds between two synchronizations
    interval: int = Field(900, ge=1)
    #: seconds between two full synchronizations
    full_sync_interval: int = Field(86_400, ge=1)


class Search(Model):
    """The fields that `context_store_search` may name, and how the records are copied."""

    fields: dict[str, Literal["string", "integer", "number", "boolean", "array", "object", "any"]]
    #: the member that identifies a record
    primary_key: str = "id"
    sync: Sync | None = None

    @property
    def reads(self) -> dict[str, SyncRead]:
        """The lists that the synchronizer reads: `""` for the full list, and by the names of the members for others."""
        if self.sync is None:
            return {}
        found = {"": self.sync, "changes": self.sync.changes, "deletions": self.sync.deletions}
        return {member: read for member, read in found.items() if read is not None}
