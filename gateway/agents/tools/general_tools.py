"""The six tools: find an operation, describe it, read, write, follow a job, connect an application."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any

from gateway.agents.mcp.context import Context
from gateway.agents.mcp.features import Call, ServerTool
from gateway.agents.mcp.results import Result, structured
from gateway.agents.tools import answers, descriptions
from gateway.agents.tools.addresses import RESULTS
from gateway.agents.tools.backend import ACTIVE, AgentBatch, Backend, ConnectorInfo, JobsBackend
from gateway.agents.tools.calls import Calls, call_of, many_calls
from gateway.agents.tools.confirmation import RetryConfirmation
from gateway.agents.tools.connector_choice import NotConnected, choose
from gateway.agents.tools.consent import PendingConsents
from gateway.agents.tools.stored_results import StoredResults
from gateway.agents.tools.write_results import RequestedWrite, Shape, shown_of_batch, whole
from gateway.contract.jobs import JobStatus
from gateway.contract.kinds import Effect
from gateway.errors import ConnectorNotReady, GatewayError, InvalidParams, ReauthorizationRequired
from gateway.jobs.model import JobSummary
from gateway.kinds.find.descriptions import QUERY_LANGUAGE, describe, described_part, query_language
from gateway.kinds.find.entries import DEFAULT_LIMIT, OperationEntry, entry_of
from gateway.kinds.find.parts import PART
from gateway.kinds.find.signatures import signature_of
from gateway.kinds.suggestions import did_you_mean

#: number of closest operations, if no operation matches
_CLOSEST = 3


class GeneralTools:
    """The six tools; only four without jobs, that is, in process."""

    def __init__(
        self,
        backend: Backend,
        calls: Calls,
        jobs: JobsBackend | None,
        consent: PendingConsents | None,
        confirmation: RetryConfirmation | None,
    ) -> None:
        self._backend = backend
        self._calls = calls
        self._results = StoredResults(backend)
        self._jobs = jobs
        self._consent = consent
        self._confirmation = confirmation

    def tools(self) -> list[ServerTool]:
        """The tools in the order in which an agent needs them."""
        calls: dict[str, Call] = {
            "find_operations": self.find,
            "describe_operation": self.describe,
            "read": self.read,
            "write": self.write,
        }
        if self._jobs is not None:
            calls |= {"job": self.job, "connect": self.connect}
        return [_tool(name, errors_as_results(known_arguments(name, call))) for name, call in calls.items()]

    async def find(self, context: Context, arguments: Mapping[str, Any]) -> Result:
        """The operations for a task; of equal matches, those of connected kinds come first."""
        connectors = await self._backend.connectors(context.caller)
        kind = arguments.get("kind")
        found = (await self._backend.index()).search(
            arguments["task"],
            kind=None if kind is None else self._backend.catalog.kind(kind).name,
            effect=arguments.get("effect"),
            limit=arguments.get("limit", DEFAULT_LIMIT),
            connected={each.kind for each in connectors},
        )
        data = await self._backend.offered(context.caller, (match.entry for match in found.data))
        closest = await self._backend.offered(context.caller, (match.entry for match in found.closest[:_CLOSEST]))
        return structured(
            {
                "data": [_shown(entry, connectors) for entry in data],
                "closest": [_shown(entry, connectors) for entry in closest],
                "message": found.message,
            }
        )

    async def describe(self, context: Context, arguments: Mapping[str, Any]) -> Result:
        """Describe an operation, a part of its params, or the query language that all searches share."""
        if arguments["operation"] == QUERY_LANGUAGE:
            return structured(query_language())
        connectors = await self._backend.connectors(context.caller)
        name, _, part = arguments["operation"].partition(PART)
        entry = entry_of(self._backend.catalog, name, {each.kind for each in connectors})
        if part:
            return structured(described_part(entry, part))
        return structured({**describe(entry), "connectors": _names(connectors, entry.kind.name)})

    async def read(self, context: Context, arguments: Mapping[str, Any]) -> Result:
        """Run an operation that changes nothing, or read a part of a long answer."""
        if arguments["operation"].startswith(RESULTS):
            return await self._results.read(context, arguments)
        if unused := {"offset", "limit"} & arguments.keys():
            raise InvalidParams(
                f"{' and '.join(sorted(unused))} cannot be used with an operation; page with its params"
            )
        entry = await self._entry(context, arguments["operation"])
        if entry.effect is not Effect.READ:
            raise InvalidParams(f"{entry.name} changes data (effect {entry.effect.value}); use write")
        return await self.run(context, entry, arguments)

    async def write(self, context: Context, arguments: Mapping[str, Any]) -> Result:
        """Run an operation that changes data, or show its requests; with `each` or `steps`, many as one job."""
        if "each" in arguments or "steps" in arguments:
            return await self._write_many(context, arguments)
        if "operation" not in arguments:
            raise InvalidParams("operation is missing; name it with params or each, or send steps")
        entry = await self._entry(context, arguments["operation"])
        if entry.effect is Effect.READ:
            raise InvalidParams(f"{entry.name} changes nothing; use read")
        is_chosen = bool(arguments.get("fields"))
        return await self.run(
            context,
            entry,
            arguments,
            whole if is_chosen else RequestedWrite(entry, arguments.get("params") or {}).shown,
        )

    async def _write_many(self, context: Context, arguments: Mapping[str, Any]) -> Result:
        """Run many operations of one connector as one job, with a result for each."""
        if self._jobs is None or arguments.get("dry_run"):
            reason = "run without a gateway" if self._jobs is None else "shown by dry_run; try one with params"
            raise InvalidParams(f"each and steps cannot be {reason}")
        calls = many_calls(arguments)
        entries = {name: await self._entry(context, name) for name in dict.fromkeys(name for name, _ in calls)}
        kinds = sorted({entry.kind.name for entry in entries.values()})
        if len(kinds) > 1:
            raise InvalidParams(f"the steps are of {' and '.join(kinds)}; send the steps of one application at a time")
        entry = next(iter(entries.values()))
        operations = [
            {"entity": entries[name].entity_id, "action": entries[name].action_id, **members} for name, members in calls
        ]
        writes = [RequestedWrite(entries[name], members.get("params") or {}) for name, members in calls]

        async def run(connector: ConnectorInfo) -> Result:
            key = arguments.get("idempotency_key")
            batch = AgentBatch(connector, operations, "steps" in arguments, key)
            return await self._calls.batch(context, batch, shown_of_batch(writes, arguments.get("fields")))

        return await self._with_connector(context, entry, arguments, run)

    async def _entry(self, context: Context, name: str) -> OperationEntry:
        """The operation with that name; a name without a kind is looked up in connected kinds first."""
        connected: set[str] = set()
        if name.count(".") == 1:
            connected = {each.kind for each in await self._backend.connectors(context.caller)}
        return entry_of(self._backend.catalog, name, connected)

    async def run(
        self, context: Context, entry: OperationEntry, arguments: Mapping[str, Any], shape: Shape = whole
    ) -> Result:
        """Run an operation; if the application is not connected, ask a person to connect it."""

        async def run(connector: ConnectorInfo) -> Result:
            call = call_of(entry, connector, arguments)
            if arguments.get("dry_run"):
                return structured({"dry_run": True, "requests": await self._backend.dry_run(context.caller, call)})
            max_bytes = arguments.get("max_bytes", descriptions.DEFAULT_BYTES)
            if arguments.get("all_pages"):
                return await self._calls.all_pages(context, call, max_bytes)
            return await self._calls.run(context, call, max_bytes=max_bytes, shape=shape)

        return await self._with_connector(context, entry, arguments, run)

    async def _with_connector(
        self,
        context: Context,
        entry: OperationEntry,
        arguments: Mapping[str, Any],
        run: Callable[[ConnectorInfo], Awaitable[Result]],
    ) -> Result:
        """Run with the connector that the arguments select; errors become results for the model."""
        connector = None
        try:
            connector = await self._choose(context, entry, arguments.get("connector"))
            return await run(connector)
        except NotConnected as error:
            return await self._ask_for_consent(context, error, error.connector)
        except (ReauthorizationRequired, ConnectorNotReady) as error:
            return await self._ask_for_consent(context, error, connector)
        except GatewayError as error:
            return answers.refused(error, entry)

    async def _choose(self, context: Context, entry: OperationEntry, name: str | None) -> ConnectorInfo:
        connector = None if name is None else await self._backend.connector(context.caller, name)
        if connector is not None and connector.kind == entry.kind.name and connector.status == ACTIVE:
            return connector
        try:
            return choose(await self._backend.connectors(context.caller), entry.kind, name)
        except NotConnected:
            if self._consent is None or not await self._consent.is_granted(context):
                raise
            return choose(await self._backend.connectors(context.caller), entry.kind, name)

    async def _ask_for_consent(self, context: Context, error: GatewayError, connector: ConnectorInfo | None) -> Result:
        kind = error.kind if isinstance(error, NotConnected) else (connector.kind if connector else "")
        if self._consent is None:
            return answers.refused(error)
        return await self._consent.ask(context, error, kind, connector)

    async def job(self, context: Context, arguments: Mapping[str, Any]) -> Result:
        """Follow, cancel or retry a job."""
        job = await self._calls.job(context, arguments["job_id"])
        match arguments.get("do", "follow"):
            case "cancel":
                job = await self._calls.cancel(context, job)
            case "retry":
                confirm = arguments.get("confirm", False) or self._was_confirmed(context, job)
                if job.status is JobStatus.UNKNOWN and not confirm and self._confirmation is not None:
                    return self._confirmation.ask(context, job)
                job = await self._calls.retry(context, job, confirm=confirm)
        job = await self._calls.follow(context, job, arguments.get("wait_seconds", 0))
        return await self._calls.described(context, job)

    def _was_confirmed(self, context: Context, job: JobSummary) -> bool:
        return self._confirmation is not None and self._confirmation.is_confirmed(context, job)

    async def connect(self, context: Context, arguments: Mapping[str, Any]) -> Result:
        """The connectors and their state; with a kind or connector, a link for a person to connect it."""
        connectors, catalog = await self._backend.connectors(context.caller), self._backend.catalog
        kind, name = arguments.get("kind"), arguments.get("connector")
        if kind is not None:
            kind = catalog.kind(kind).name
            connectors = [each for each in connectors if each.kind == kind]
        if name is not None:
            connectors = [each for each in connectors if name in (each.id, each.name)]
        shown = [{"application": catalog.application_of(each.kind), **each.as_document()} for each in connectors]
        if kind is None and name is None:
            kinds = [{"application": each.spec.application, "kind": each.name} for each in catalog]
            return structured({"connectors": shown, "kinds": kinds})
        assert self._consent is not None
        if name is not None and not connectors:
            raise InvalidParams(f"there is no connector {name!r}; call connect without arguments to see all")
        again = connectors[0] if name is not None else None
        return await self._consent.offered(context, again.kind if again else str(kind), again, shown)


def known_arguments(name: str, call: Call) -> Call:
    """A call that refuses unknown arguments: with a misspelt `dry_run`, a write would be sent."""
    known = descriptions.INPUTS[name]

    async def checked(context: Context, arguments: Mapping[str, Any]) -> Result:
        for each in arguments.keys() - known.keys():
            hint = "; an operation's own params belong in params" if "params" in known else ""
            raise InvalidParams(f"{name} has no argument {each!r}; {did_you_mean(each, known)}{hint}")
        return await call(context, arguments)

    return checked


def errors_as_results(call: Call) -> Call:
    """A call that returns errors as results, which tell the model what to correct."""

    async def safe(context: Context, arguments: Mapping[str, Any]) -> Result:
        try:
            return await call(context, arguments)
        except GatewayError as error:
            return answers.refused(error)

    return safe


def _tool(name: str, call: Call) -> ServerTool:
    return ServerTool(
        name=name,
        description=descriptions.DESCRIPTIONS[name],
        call=call,
        input_schema=descriptions.input_schema(name),
        output_schema=descriptions.OUTPUTS.get(name),
        annotations=descriptions.ANNOTATIONS[name],
    )


def _shown(entry: OperationEntry, connectors: Sequence[ConnectorInfo]) -> dict[str, Any]:
    return {
        "application": entry.kind.spec.application,
        "operation": entry.name,
        "signature": signature_of(entry),
        "effect": entry.effect.value,
        "connectors": _names(connectors, entry.kind.name),
    }


def _names(connectors: Sequence[ConnectorInfo], kind: str) -> list[str]:
    return [each.name for each in connectors if each.kind == kind]
