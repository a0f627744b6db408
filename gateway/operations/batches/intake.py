"""Receives a batch: checks every operation against the connector's kind and stores it, before the first is sent."""

import hashlib
from itertools import islice
from typing import Any

import msgspec

from gateway.access.identity.model import Caller, Scope
from gateway.connectors.resolver import ResolvedConnector
from gateway.contract.batches import MAX_STEPS, BatchOperation, BatchOptions, ReceivedOperation
from gateway.contract.kinds import Effect
from gateway.contract.policies import Surface
from gateway.errors import MAX_FAULTS, FieldError, InvalidParams
from gateway.jobs.sealing import JobKey
from gateway.kinds.actions import SEARCH_ACTION
from gateway.kinds.catalog import Operation
from gateway.operations.batches import references
from gateway.operations.batches.inputs import BatchInputs
from gateway.operations.batches.model import StoredOperation
from gateway.operations.permission import Permission
from gateway.upstream.download import ACTION as DOWNLOAD
from gateway.upstream.prepared import PreparedCall, prepare

#: maximum operations of one stored part
_PART_LINES = 500
#: maximum bytes of one stored part
_PART_BYTES = 256 << 10
_ORDER = (Effect.READ, Effect.IDEMPOTENT, Effect.WRITE)
_NOT_IN_BATCHES = {
    DOWNLOAD: "a batch cannot download files; send the download separately",
    SEARCH_ACTION: "a batch cannot search the copy; send the search separately",
}


class Intake:
    """The operations of one batch, received in order."""

    def __init__(
        self,
        caller: Caller,
        resolved: ResolvedConnector,
        permission: Permission,
        options: BatchOptions,
        limit: int,
        inputs: BatchInputs,
        key: JobKey,
    ) -> None:
        self._caller = caller
        self._record = resolved.record
        self._permission = permission
        self._kind = resolved.connector.kind
        self._options = options
        self._limit = min(limit, MAX_STEPS) if options.steps else limit
        self._inputs = inputs
        self._key = key
        self._lines: list[bytes] = []
        self._size = 0
        self._step_ids: list[str] = []
        self._faults: list[FieldError] = []
        self._identity = hashlib.sha256(msgspec.json.encode(options))
        self.total = 0
        #: the strongest effect of the operations; a batch with only reads counts as idempotent
        self.effect = Effect.IDEMPOTENT

    async def add(self, received: ReceivedOperation) -> None:
        """Check an operation and store it; raises InsufficientScope, DeniedByPolicy, and InvalidParams for too many."""
        if self.total == self._limit:
            kind = "steps" if self._options.steps else "operations"
            raise _refusal("/operations", f"the batch has more than {self._limit:,} {kind}; split it")
        index, self.total = self.total, self.total + 1
        try:
            stored, effect = self._checked(received)
        except InvalidParams as error:
            self._note(index, received.where, error)
            return
        self._caller.require(Scope.READ if effect is Effect.READ else Scope.WRITE)
        if not self._options.steps:  # a step is decided when it runs: its params may be results of earlier ones
            call = PreparedCall.of(self._kind.operation(stored.entity, stored.action), stored.params)
            await self._permission.require_call(self._caller, self._record, call, Surface.BATCH, may_wait=True)
        self.effect = max(self.effect, effect, key=_ORDER.index)
        line = msgspec.json.encode(stored, order="deterministic")
        self._identity.update(line + b"\n")
        self._lines.append(line)
        self._size += len(line)
        if len(self._lines) == _PART_LINES or self._size >= _PART_BYTES:
            await self._store()

    async def end(self) -> None:
        """Store the remaining operations; raises InvalidParams with the first `MAX_FAULTS` faults of the batch."""
        if self._faults:
            raise InvalidParams(faults=self._faults)
        if not self.total:
            raise _refusal("/operations", "the batch has no operations; send at least one")
        await self._store()

    def fingerprint(self) -> bytes:
        """SHA-256 of the options and operations."""
        return self._identity.digest()

    async def _store(self) -> None:
        if self._lines and not self._faults:
            lines = b"\n".join(self._lines).decode() + "\n"
            await self._inputs.store(self._key, self.total - len(self._lines), lines)
        self._lines, self._size = [], 0

    def _checked(self, received: ReceivedOperation) -> tuple[StoredOperation, Effect]:
        if isinstance(received.value, InvalidParams):
            raise received.value
        sent = BatchOperation.of(received.value)
        if sent.action in _NOT_IN_BATCHES:
            raise InvalidParams(f"{sent.entity}.{sent.action}: {_NOT_IN_BATCHES[sent.action]}")
        operation = self._kind.operation(sent.entity, sent.action)
        if self._options.steps:
            return self._checked_step(sent, operation)
        call = prepare(operation, sent.params or {})
        return _stored(sent, operation, call.params, call.limit), call.effect

    def _checked_step(self, sent: BatchOperation, operation: Operation) -> tuple[StoredOperation, Effect]:
        """Check a step, except for references to results, which are checked when it runs."""
        params, faults = sent.params or {}, []
        if sent.id is not None and not references.is_step_id(sent.id):
            faults.append(
                FieldError("/id", "id", "pattern", f"id is {sent.id!r}; it may have letters, digits, _ and -")
            )
        elif sent.id in self._step_ids:
            faults.append(FieldError("/id", "id", "conflict", f"id {sent.id!r} is that of an earlier step"))
        faults += islice(references.faults_of(params, self._step_ids), MAX_FAULTS)
        try:
            prepare(operation, params)
        except InvalidParams as error:
            faults += references.without_references(error.faults, params)
        if faults:
            raise InvalidParams(faults=faults)
        if sent.id is not None:
            self._step_ids.append(sent.id)
        effect = Effect.WRITE if operation.action.write_if else operation.action.effect
        return _stored(sent, operation, params, None), effect

    def _note(self, index: int, where: str, error: InvalidParams) -> None:
        """Add the faults of an operation, with its index in the batch."""
        base = f"/operations/{index}"
        faults = error.faults or (FieldError("", "", error.code, error.detail),)
        for fault in faults[: MAX_FAULTS - len(self._faults)]:
            pointer = base + fault.pointer
            field = pointer.removeprefix("/").replace("/", ".")
            self._faults.append(FieldError(pointer, field, fault.code, f"{where}: {fault.message}"))
        if len(self._faults) >= MAX_FAULTS:
            raise InvalidParams(faults=self._faults)


def _stored(sent: BatchOperation, operation: Operation, params: Any, limit: int | None) -> StoredOperation:
    return StoredOperation(operation.entity_id, operation.action_id, sent.id, params, limit)


def _refusal(pointer: str, message: str) -> InvalidParams:
    return InvalidParams(message, faults=[FieldError(pointer, pointer.strip("/"), "invalid", message)])
