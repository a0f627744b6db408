"""An entry of the audit log: how an action begins it and completes it, and the statement that stores it."""

import time
from collections.abc import Callable, Collection
from contextlib import AbstractContextManager
from contextvars import ContextVar
from types import TracebackType
from typing import Protocol
from uuid import UUID

import msgspec
from msgspec.structs import replace

from gateway.contract.kinds import Effect
from gateway.errors import DeniedByPolicy, GatewayError
from gateway.foundation.aio.clock import CLOCK

#: the outcome of a write that may have been done, and of one whose settlement is missing
UNKNOWN = "unknown"
#: the outcome of a call whose process was killed, or whose caller left
INTERRUPTED = "interrupted"
_COLUMNS = """
    organization_id, at, actor, connector_id, kind, what, target, changed, outcome, intent, request_id, took_ms,
    entry_kind, call_id, acting_client, session_id, policies, approval_id, approved_by, effect
"""
#: the ids of those who approved a call; `{approval}` is the id of its approval
_APPROVED_BY = """
    CASE WHEN {approval} IS NOT NULL THEN ARRAY(
        SELECT word.client_id FROM approval_decisions AS word
        WHERE word.approval_id = {approval} AND word.decision = 'approved' ORDER BY word.at
    ) END
"""
#: how entries end that are inserted again because their commit was not confirmed
ONCE = "ON CONFLICT (call_id, entry_kind) WHERE call_id IS NOT NULL DO NOTHING"


def approved_by(approval: str) -> str:
    """The expression for the ids of those who approved a call; `approval` is that for the id of its approval."""
    return _APPROVED_BY.format(approval=approval)


def inserting(rows: str, *, also_from: str = "") -> str:
    """The statement that inserts entries; `rows` is the argument with their JSON array, as `$1`."""
    return f"""
        INSERT INTO audit ({_COLUMNS})
        SELECT entry.organization_id, to_timestamp(entry.at), entry.actor, entry.connector_id, entry.kind, entry.what,
               entry.target, entry.changed, entry.outcome, entry.intent, entry.request_id, entry.took_ms,
               COALESCE(entry.entry_kind, 'event'), entry.call_id,
               entry.acting_client, entry.session_id, entry.policies, entry.approval_id,
               {approved_by("entry.approval_id")}, entry.effect
        FROM {also_from} json_to_recordset({rows}::json)
        AS entry (organization_id uuid, at float8, actor uuid, connector_id uuid, kind text, what text, target text,
                  changed text[], outcome text, intent text, request_id text, took_ms integer, entry_kind text,
                  call_id uuid, acting_client uuid, session_id uuid, policies text[], approval_id uuid,
                  effect text)
        WHERE NOT (entry.outcome = '{INTERRUPTED}' AND entry.entry_kind = 'settlement'
                   AND EXISTS (SELECT FROM jobs WHERE jobs.id = entry.call_id AND finished_at IS NULL))
        {ONCE}
    """


#: inserts the entries of a JSON array
INSERT_ENTRIES = inserting("$1")


class Entry(msgspec.Struct, omit_defaults=True, kw_only=True):
    """One action: the route names it, the use case sets its members, and the end of the request completes it.

    `what` is an operation or an action on a record; never params, never secrets.
    """

    #: None if nothing is recorded, such as for a dry run
    what: str | None
    organization_id: UUID | None = None
    actor: UUID | None = None
    #: the client that acted for the person in a session, and the session
    acting_client: UUID | None = None
    session_id: UUID | None = None
    #: names of the policies' statements that decided about the call
    policies: list[str] | None = None
    #: the approval that the call asked for
    approval_id: UUID | None = None
    connector_id: UUID | None = None
    #: the kind of that connector
    kind: str | None = None
    #: the effect of the operation that was called, for a call that is metered; None for any other action
    effect: Effect | None = None
    #: the id of the record, workspace, job or client that was changed
    target: str | None = None
    #: dotted names of the members that were written, never their values
    changed: list[str] | None = None
    intent: str | None = None
    #: set by the use case; by default it follows from the status of the response
    outcome: str | None = None
    request_id: str | None = None
    #: milliseconds from the request's first line to its response
    took_ms: int | None = None
    #: Unix time; None until the entry is noted
    at: float | None = None
    #: `intent`, `settlement` or `event`
    entry_kind: str = "event"
    #: the same for the intent and the settlement of a write, and for the acceptance and the end of a job
    call_id: UUID | None = None
    #: when it began, by the monotonic clock
    started: float = msgspec.field(default_factory=time.monotonic)
    #: whether another statement stores it
    is_stored: bool = False
    #: the `call_id` under which a file has the entry of a read
    begun: UUID | None = None

    def acted(self, actor: "Actor") -> None:
        """Set who acted."""
        self.organization_id, self.actor = actor.organization_id, actor.client_id
        if actor.session is not None:
            self.acting_client, self.session_id = actor.session.client_id, actor.session.id

    def end(self, outcome: str, request_id: str | None, took_ms: int) -> bool:
        """Complete the entry; false if it is stored already, or nothing was done for an organization."""
        if self.what is None or self.organization_id is None or self.is_stored:
            return False
        self.outcome = self.outcome or outcome
        self.request_id, self.took_ms = request_id, took_ms
        return True

    def intent_of(self, call_id: UUID) -> "Entry":
        """The entry to commit before the write is sent; this one becomes its settlement."""
        self.call_id, self.entry_kind = call_id, "settlement"
        return replace(self, entry_kind="intent", at=CLOCK.unix_time())

    def withdraw(self) -> None:
        """Forget the intent, which was not committed: the entry is an event again."""
        self.call_id, self.entry_kind = None, "event"

    def settle(self, outcome: str) -> None:
        """Complete an entry that the caller stores: the settlement of a write, or the event of another call."""
        self.end(outcome, self.request_id, round((time.monotonic() - self.started) * 1000))
        self.at, self.is_stored = CLOCK.unix_time(), True

    def accept(self, call_id: UUID | None) -> None:
        """Record that a job was accepted; `call_id` is that of the settlement at its end, None if there is none."""
        self.outcome = "accepted"
        if call_id is not None:
            self.entry_kind, self.call_id = "intent", call_id


class ActingSession(Protocol):
    """The session in which a client acts for a person."""

    @property
    def id(self) -> UUID: ...

    @property
    def client_id(self) -> UUID: ...


class Actor(Protocol):
    """The actor: a client acting for one organization."""

    @property
    def organization_id(self) -> UUID: ...

    @property
    def client_id(self) -> UUID | None: ...

    @property
    def session(self) -> ActingSession | None: ...


class _RequestAudit(msgspec.Struct):
    """The members that all entries of a request have in common."""

    request_id: str | None = None
    #: the request's entry, until its first action uses it
    entry: Entry | None = None


_REQUEST: ContextVar[_RequestAudit | None] = ContextVar("request_audit", default=None)


def begin_request(request_id: str, what: str | None) -> Entry | None:
    """Begin a request: actions of this task, and of tasks that it starts, belong to it; the first uses its entry."""
    entry = None if what is None else Entry(what=what)
    _REQUEST.set(_RequestAudit(request_id, entry))
    return entry


#: the entry of the innermost `Audit.record` of this task
_CURRENT: ContextVar[Entry | None] = ContextVar("audit_entry", default=None)


def note_policies(names: Collection[str]) -> None:
    """Set the policies that decided about the call that is being recorded."""
    entry = _CURRENT.get()
    if entry is not None and names:
        entry.policies = list(names)


class _Recording(msgspec.Struct, frozen=True):
    """A block whose outcome completes an entry; a class is faster than a generator."""

    entry: Entry
    #: stores the entry at the end of the block; None if the middleware does
    note: Callable[[Entry], None] | None
    #: the entry of the block around this one
    outer: Entry | None

    def __enter__(self) -> Entry:
        _CURRENT.set(self.entry)
        return self.entry

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        entry = self.entry
        _CURRENT.set(self.outer)
        if error is None:
            entry.outcome = entry.outcome or "succeeded"
        elif isinstance(error, GatewayError):
            entry.outcome = outcome_of(error)
            if isinstance(error, DeniedByPolicy) and error.extra.get("policy"):
                entry.policies = [error.extra["policy"]]
        if self.note is None:
            return
        if entry.end(INTERRUPTED, entry.request_id, round((time.monotonic() - entry.started) * 1000)):
            self.note(entry)


def recording(
    what: str,
    caller: Actor,
    note: Callable[[Entry], None],
    *,
    connector_id: UUID | None = None,
    target: str | None = None,
    changed: Collection[str] = (),
    intent: str | None = None,
) -> AbstractContextManager[Entry]:
    """The block of an action: it completes the request's entry if it is the first, else another, which it notes."""
    request = _REQUEST.get() or _RequestAudit()
    offered, request.entry = request.entry, None
    entry = offered or Entry(what=what)
    entry.what, entry.intent, entry.request_id = what, intent, request.request_id
    entry.acted(caller)
    entry.connector_id, entry.target = connector_id or entry.connector_id, target or entry.target
    entry.changed = sorted(changed) if changed else None
    return _Recording(entry, None if offered else note, _CURRENT.get())


def outcome_of(error: BaseException) -> str:
    """The outcome of an action that raised: the error's code, or `unknown` if it may have been done."""
    if not isinstance(error, GatewayError):
        return INTERRUPTED
    return UNKNOWN if error.is_outcome_unknown else error.code
