"""Models of synchronization: the lists that a copy is read from, and the fields that a search may name."""

from typing import Any, Literal

from pydantic import Field

from gateway.kinds.members import Identifier, JsonPath, Model
from gateway.kinds.requests import RequestSpec


class SyncRead(RequestSpec):
    """A list as the synchronizer reads it: one request, constant params, the paging style."""

    #: the path of the list of records in the response
    records: JsonPath
    #: constant params, in the query or body as usual; in texts `{since}` is the time from which changes are wanted,
    #: `{fields}` the search fields and `{properties}` those of the property map, with commas between them
    params: dict[str, Any] = Field(default_factory=dict)
    #: seconds from one page to the next, where the application allows this list less than others
    request_interval: float = Field(0, ge=0)


class Incremental(Model):
    """How the synchronizer requests the changes since its last read."""

    #: `modified`: a param or text names the time; `newest_first`: read down to that time; `cursor`: the application's
    #: own cursor continues for ever; `end_time`: each answer names the time of the next; `window`: a search that ends
    #: early is asked anew from the last time it told
    style: Literal["modified", "newest_first", "cursor", "end_time", "window"]
    #: the param that takes the time
    param: str | None = None
    #: how the application writes times in requests
    format: Literal["iso", "seconds", "milliseconds"] = "iso"
    #: the member of a record that holds the time of its change
    field: JsonPath | None = None
    #: the Meta member that is true at the end
    end: str | None = None
    #: seconds that are read again before the last read: clocks differ, and changes may appear late
    overlap: int = Field(120, ge=0)
    #: seconds that a time in a request must lie in the past
    lag: int = Field(0, ge=0)


class Parent(Model):
    """The entity whose records are walked, because the list belongs to one of them at a time."""

    entity: Identifier
    #: param → the member of the parent that fills it
    params: dict[str, JsonPath]
    #: members that records get from their parent: name → the parent's member
    add_fields: dict[str, JsonPath] = Field(default_factory=dict)
    #: members that a parent must have to be read at all; `*` is any value
    where: dict[str, Any] = Field(default_factory=dict)
    #: whether changes are only below parents that changed themselves
    only_changed: bool = False
    #: whether ids count only below the parent
    scopes_ids: bool = False
    #: the member that is true of a record that has records of its own below it, to be read by its id
    recurse_field: str | None = None
    #: those that have not, in spite of it: member → values
    recurse_except: dict[str, tuple[str, ...]] = Field(default_factory=dict)


class Sync(SyncRead):
    """How the copy of an entity is loaded and kept fresh."""

    incremental: Incremental | None = None
    parent: Parent | None = None
    #: another list for changes, if the full list cannot filter by them; members that its records lack keep their values
    changes: SyncRead | None = None
    #: the list of deleted records
    deletions: SyncRead | None = None
    #: members that mark a record as deleted
    deleted_when: dict[str, Any] = Field(default_factory=dict)
    #: members that records get besides: name → its path within the record
    add_fields: dict[str, JsonPath] = Field(default_factory=dict)
    #: paths in a record that are never kept: they change with every answer, or are a permission by themselves
    excluded_fields: tuple[JsonPath, ...] = ()
    #: whether records that the application no longer lists are kept
    retain_unlisted: bool = False
    #: the param of `get` that takes a record's id, where the list promises no completeness: records that it misses are
    #: read one by one, and count as deleted only if they are not found
    verify_param: str | None = None
    #: members of records that the list leaves out: such records are not taken as deleted
    unlisted_when: dict[str, Any] = Field(default_factory=dict)
    #: a named Python function of `gateway.context_store.sync.transforms` that makes search documents of records
    transform: Literal["associated_ids", "comment_events", "message_time", "property_list"] | None = None
    #: seconds from one synchronization to the next, and from one reading of everything to the next
    interval: int = Field(900, ge=1)
    full_sync_interval: int = Field(86_400, ge=1)


class Search(Model):
    """The fields that `context_store_search` may name, and how the copy is kept fresh."""

    fields: dict[str, Literal["string", "integer", "number", "boolean", "array", "object", "any"]]
    #: the member that identifies a record
    primary_key: str = "id"
    sync: Sync | None = None

    @property
    def reads(self) -> dict[str, SyncRead]:
        """The lists that the synchronizer reads, by the member that tells of them."""
        if self.sync is None:
            return {}
        found = {"": self.sync, "changes": self.sync.changes, "deletions": self.sync.deletions}
        return {member: read for member, read in found.items() if read is not None}
