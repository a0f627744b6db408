"""Models of operations that the application runs in the background or accepts in portions only."""

from collections.abc import Iterator
from functools import cached_property
from typing import Any, Literal

from pydantic import Field

from gateway.kinds.members import CheckedModel, ContentType, JsonPath, Model, RequestLine

#: the name, in the paths of further requests, of the id of the started operation
RUN_ID = "run_id"
#: what a further request to an MCP server asks of a task
TaskMethod = Literal["get", "result", "cancel"]
#: seconds between two reads of the state: the first interval, and by default the longest
_LONGEST_INTERVAL = 5.0


class FollowUp(Model):
    """A further request of an operation; `{run_id}` in it is the id of the started operation."""

    request: RequestLine
    #: constant headers
    headers: dict[str, str] = Field(default_factory=dict)
    #: constant query members
    constant_query: dict[str, str | tuple[str, ...]] = Field(default_factory=dict)
    #: the media type of the body, if it is not that of the kind
    content_type: ContentType | None = None
    #: constant members of the body
    constant_body: dict[str, Any] = Field(default_factory=dict)
    #: the param that is the whole body; the request that starts the operation does not send it
    request_body: str | None = None
    #: for an MCP server: what is asked of the task of the tool, in place of a body
    task: TaskMethod | None = None


class LongRunStart(Model):
    """How the operation is started: by the action's own request, unless `request` names another one."""

    #: the path of the id in the response
    id: JsonPath
    #: the request that starts the operation, if it is not the action's own
    request: RequestLine | None = None
    #: whether the action's own request is sent if the application refuses to start the operation
    fallback: bool = False
    #: whether a response without an id is that of an operation that has ended already
    immediate: bool = False


class LongRunStatus(FollowUp):
    """How the state is read, and what its values mean. A state in none of the lists ends the job."""

    #: the path of the state in the response
    path: JsonPath
    #: states of an operation that waits for `upload` and `close`
    open: tuple[str | bool, ...] = ()
    running: tuple[str | bool, ...]
    succeeded: tuple[str | bool, ...]
    failed: tuple[str | bool, ...] = ()
    #: states of an operation that was canceled
    canceled: tuple[str | bool, ...] = ()
    #: states of an operation that waits for a person's input, which the gateway cannot give: it is canceled
    waiting: tuple[str | bool, ...] = ()
    #: maximum seconds between two requests; the first intervals are shorter
    interval: float = Field(_LONGEST_INTERVAL, gt=0)
    #: the path of the milliseconds until the next request that the application asks for, at most `interval`
    wait: JsonPath | None = None
    #: the path of the number of items that are done
    progress: JsonPath | None = None
    #: the path of the application's message, which explains a failure
    message: JsonPath | None = None

    @cached_property
    def ended(self) -> tuple[str | bool, ...]:
        """The states after which nothing is read any more."""
        return (*self.succeeded, *self.failed, *self.canceled, *self.waiting)

    @cached_property
    def states(self) -> tuple[str | bool, ...]:
        """All states."""
        return (*self.open, *self.running, *self.ended)


class ItemResults(Model):
    """How the application reports on each item: the operation's result has a line `{id, success, error}` for each."""

    #: the path of the list of entries; lists of several paths are read one after the other
    path: tuple[JsonPath, ...] = ((),)
    #: the paths of an item's id in its entry, of which the first that exists counts; a list is several ids
    id: tuple[JsonPath, ...] = (("id",),)
    #: the path of the item's position in its portion, from 0
    index: JsonPath | None = None
    #: the member of the items that the gateway numbers, and the paths at which entries repeat it
    trace: str | None = None
    trace_path: tuple[JsonPath, ...] = ()
    #: the path that is true if the item was done; without `success`, an entry without an error was done
    success: JsonPath | None = None
    #: the paths of the error message, of which the first that holds text counts
    error: tuple[JsonPath, ...] = ()
    #: the path of the record in the entry of an item that was done, for the line's `record`
    record: JsonPath | None = None


class ResultRequest(FollowUp):
    """A request that reads results of an operation that has ended."""

    format: Literal["json", "csv"] = "json"
    #: the path of the list in the response
    records: JsonPath = ()
    #: the paging style of the list
    paging: str | None = None
    #: constant members that each record gets
    add_fields: dict[str, Any] = Field(default_factory=dict)


class LongRunResults(Model):
    """How the results are read; by default they are in the last response to `status`."""

    #: the requests that read them, one after the other
    requests: tuple[ResultRequest, ...] = ()
    #: the request whose response has the one record, if the last response to `status` does not have it
    request: FollowUp | None = None
    #: how the results report on each item
    items: ItemResults | None = None
    #: the member of the record that gets the id of the operation, if the response has none
    id_field: str | None = None


class Split(Model):
    """How the input is split into portions; each is started by a separate request."""

    #: the param with the items: a list or a comma-separated text
    param: str
    #: maximum number of items in a portion
    size: int = Field(ge=1)
    #: maximum number of portions that run at the same time; fewer while the application reports that its queue is full
    concurrency: int = Field(1, ge=1)
    #: the progress for people, with `{done}` and `{total}`
    message: str = "{done} of {total} items done"


class LongRunning(CheckedModel):
    """An operation of several requests, which start it, send its input, and read its state and its results."""

    start: LongRunStart | None = None
    #: sends the input, if the request that starts the operation does not
    upload: FollowUp | None = None
    #: tells the application to begin; before it the application does nothing
    close: FollowUp | None = None
    #: without it, the response to the start has the results
    status: LongRunStatus | None = None
    results: LongRunResults = LongRunResults()
    #: asks the application to end the operation, when the job is canceled
    cancel: FollowUp | None = None
    split: Split | None = None

    @property
    def follow_ups(self) -> dict[str, FollowUp]:
        """The further requests, by the member that describes them."""
        named = {
            "upload": self.upload,
            "close": self.close,
            "status": self.status,
            "results.request": self.results.request,
            "cancel": self.cancel,
        }
        found = {member: each for member, each in named.items() if each is not None}
        reading = {f"results.requests.{place}": each for place, each in enumerate(self.results.requests)}
        return {**found, **reading}

    def _faults(self) -> Iterator[str]:
        if (self.start is None) is not (self.status is None):
            yield "start and status need each other: start has the path of the id, status reads its state"
        if self.start is None and self.split is None:
            yield "an operation without start needs split, which divides its input into portions"
        for member in ("upload", "close", "cancel"):
            if self.start is None and getattr(self, member) is not None:
                yield f"{member} needs start, which has the path of the id"
        if (self.close is not None) is not bool(self.status and self.status.open):
            yield "close and status.open need each other: status.open lists the states that wait for close"
        if self.status is not None and self.status.waiting and self.cancel is None:
            yield "status.waiting needs cancel, which ends an operation that waits for a person"
        if self.status is not None and len(set(self.status.states)) < len(self.status.states):
            yield "a state of status is in two lists"
