"""`gateway call`: one operation of one connector."""

from collections.abc import Mapping
from typing import Any

import click

from gateway.cli.arguments import PARAMS_HELP, read_params
from gateway.cli.client_session import calls_gateway, connector_option, facts_of, find, names
from gateway.cli.failures import EXIT_CODES, note
from gateway.cli.jobs import failed_items, require_complete
from gateway.cli.output import Format, format_option, is_table, write, write_request, write_stream
from gateway.cli.progress import follow
from gateway.cli.shell_completion import (
    complete_action,
    complete_entity,
    complete_field,
    complete_kind,
    complete_param,
)
from gateway.client import Answer, Connector, Gateway, Job


@click.command(epilog=f"{PARAMS_HELP}\n\n{EXIT_CODES}")
@click.argument("kind", shell_complete=complete_kind)
@click.argument("entity", shell_complete=complete_entity)
@click.argument("action", shell_complete=complete_action)
@click.argument("params", nargs=-1, shell_complete=complete_param)
@connector_option()
@click.option(
    "--select",
    "--fields",
    "selected",
    multiple=True,
    metavar="FIELDS",
    shell_complete=complete_field,
    help="Only these fields, such as id,user.name.",
)
@click.option(
    "--exclude",
    "excluded",
    multiple=True,
    metavar="FIELDS",
    shell_complete=complete_field,
    help="All fields except these.",
)
@click.option("--all", "wants_all", is_flag=True, help="Fetch all pages of a list.")
@click.option("--limit", type=click.IntRange(min=1), help="Maximum number of records; fetches pages as needed.")
@click.option("--async", "is_async", is_flag=True, help="Run as a job on the workers and print the job.")
@click.option(
    "--wait",
    type=click.IntRange(0, 300),
    metavar="SECONDS",
    help="Wait up to SECONDS for the result, then print the job.",
)
@click.option("--dry-run", is_flag=True, help="Print the requests to the application without sending them.")
@click.option("--fail-on-partial", is_flag=True, help="Exit code 6 unless every item of a bulk operation succeeds.")
@click.option("--meta", "wants_meta", is_flag=True, help="Also print the paging metadata of the application.")
@click.option("--intent", metavar="TEXT", help="Reason, stored in the audit log.")
@click.option("--idempotency-key", metavar="KEY", help="A repeated call with the same key does not write again.")
@format_option
@calls_gateway
async def call(gateway: Gateway, /, fail_on_partial: bool, **options: Any) -> None:
    """Run one operation of a connector. KIND may be a connector's name or id.

    \b
    gateway call support-desk tickets list per_page=2
    gateway call support-desk tickets create ticket.subject=Fire
    gateway call team-chat channels list --all -o ndjson
    """
    failed = await _call(gateway, **options)
    if fail_on_partial:
        require_complete(failed)


async def _call(
    gateway: Gateway,
    kind: str,
    entity: str,
    action: str,
    params: tuple[str, ...],
    connector: str | None,
    wants_all: bool,
    limit: int | None,
    selected: tuple[str, ...],
    **options: Any,
) -> int:
    """The number of items of a bulk operation that did not succeed."""
    if action == "download":
        raise click.UsageError(f"a file is saved with: gateway download {kind} {entity} …")
    found = await find(gateway, kind, connector)
    facts = await facts_of(gateway, found.kind, entity, action)
    call_params = read_params(params, facts.get("params") or {})
    fields = {"select": names(selected), "exclude": names(options.pop("excluded"))}
    if wants_all or limit is not None:
        records = gateway.records(
            found, entity, action, with_page_size(call_params, facts, limit), limit=limit, **fields
        )
        await write_stream(records, fields["select"] or ())
        return 0
    outcome = await _outcome(gateway, found, (entity, action, call_params), fields, **options)
    if isinstance(outcome, Job):
        _write_job(outcome)
        return 0
    if options["dry_run"] and is_table():
        for request in outcome.result:
            write_request(request)
        return 0
    _write_answer(outcome, fields["select"], wants_meta=options["wants_meta"])
    if outcome.warning is not None:
        note(outcome.warning)
    if outcome.redacted:
        note(f"policies leave out {', '.join(outcome.redacted)}")
    if is_table():
        _note_more_records(outcome)
    return failed_items(outcome.result)


def with_page_size(params: dict[str, Any], facts: Mapping[str, Any], limit: int | None) -> dict[str, Any]:
    """The params with a page size: `limit`, at most the operation's maximum. Unchanged if they have a page size."""
    paging, schema = facts.get("paging") or {}, facts.get("params") or {}
    size = paging.get("size")
    if size is None or size in params or "limit" in params:
        return params
    dependents = [each for name, each in schema.get("dependentSchemas", {}).items() if name in params]
    bounds = [each.get("properties", {}).get(size, {}).get("maximum") for each in (schema, *dependents)]
    largest = min((bound for bound in bounds if bound is not None), default=None)
    return params if largest is None else {**params, size: largest if limit is None else max(1, min(limit, largest))}


async def _outcome(
    gateway: Gateway,
    connector: Connector,
    operation: tuple[str, str, dict[str, Any]],
    fields: dict[str, list[str] | None],
    *,
    is_async: bool,
    wait: int | None,
    dry_run: bool,
    intent: str | None,
    idempotency_key: str | None,
    wants_meta: bool,
) -> Answer | Job:
    """The answer, also of an operation that runs as a job; the job with --async, or if it outlasts --wait."""
    entity, action, params = operation
    options: dict[str, Any] = {"intent": intent, "idempotency_key": idempotency_key, **fields}
    if is_async:
        return await gateway.submit(connector, entity, action, params, **options)
    started = await gateway.begin(connector, entity, action, params, wait=wait, dry_run=dry_run, **options)
    if isinstance(started, Job) and wait is None:
        return await (await follow(started)).result()
    return started


def _write_answer(answer: Answer, selected: list[str] | None, *, wants_meta: bool) -> None:
    if wants_meta:
        write({"result": answer.result, "meta": answer.meta}, default=Format.JSON)
        return
    is_search = isinstance(answer.result, dict) and {"data", "meta"} == answer.result.keys()
    write(answer.records if is_search and is_table() else answer.result, selected or ())


def _write_job(job: Job) -> None:
    write({"id": job.id, "status": job.status, "message": job.view.message})
    note(f"follow it with: gateway jobs watch {job.id}")


def _note_more_records(answer: Answer) -> None:
    if answer.incomplete is not None:
        note(answer.incomplete)
    if answer.next is not None:
        note("there are more records: --all prints every page, --limit N prints N records")
