"""Shell completion. Kinds, entities, actions, params and fields come from spec files, without loading the catalog.

Connectors and jobs come from the gateway; there are none if it is unavailable.
"""

import asyncio
import os
from collections.abc import Awaitable, Callable, Iterable, Mapping
from itertools import takewhile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from click.shell_completion import CompletionItem, split_arg_string

if TYPE_CHECKING:
    from gateway.client import Gateway

#: maximum seconds for the gateway's answer, while the user waits at the shell
_TIMEOUT = 1.5
_MAX_JOBS = 30


def complete_kind(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    return _offered((folder.name for folder in _folders()), incomplete)


def complete_entity(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    folder = _folder(ctx)
    files = folder.glob("*.yaml") if folder else ()
    return _offered((path.stem for path in files if path.name != "connector.yaml"), incomplete)


def complete_action(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    from gateway.kinds.actions import SEARCH_ACTION

    entity = _entity(ctx)
    return _offered([*entity.get("actions", {}), *([SEARCH_ACTION] if "search" in entity else [])], incomplete)


def complete_param(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Names such as `per_page=` and `ticket.`; after `sort_order=` the values of its enum."""
    action = _typed(ctx, "action") or str(ctx.info_name)
    members: Mapping[str, Any] = {"properties": _entity(ctx).get("actions", {}).get(action, {}).get("params", {})}
    *outer, last = incomplete.partition("=")[0].split(".")
    for name in outer:
        members = members.get("properties", {}).get(name, {})
    place = "".join(f"{name}." for name in outer)
    properties = members.get("properties", {})
    if "=" in incomplete:
        return _offered((f"{place}{last}={value}" for value in properties.get(last, {}).get("enum", ())), incomplete)
    words = (f"{place}{name}{'.' if 'properties' in schema else '='}" for name, schema in properties.items())
    return _offered(words, incomplete)


def complete_field(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Fields of the entity; after a comma the next field."""
    entity = _entity(ctx)
    fields = [*(entity.get("fields") or ()), *(entity.get("search") or {}).get("fields", ())]
    before, comma, _ = incomplete.rpartition(",")
    return _offered((f"{before}{comma}{name}" for name in fields), incomplete)


def complete_connector(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Unique names of the workspace's connectors, and ids for other connectors; once a letter is typed, all ids."""

    async def names(gateway: "Gateway") -> list[str]:
        found = await gateway.connectors.list()
        all_names = [each.name for each in found]
        ids = [each.id for each in found if all_names.count(each.name) > 1 or incomplete]
        return [*(name for name in all_names if all_names.count(name) == 1), *ids]

    return _offered(_fetched(ctx, names), incomplete)


def complete_job(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """The newest jobs, each with its status and operation."""

    async def jobs(gateway: "Gateway") -> list[CompletionItem]:
        found = gateway.jobs.list(limit=_MAX_JOBS)
        return [CompletionItem(job.id, help=f"{job.status} {job.view.entity}.{job.view.action}") async for job in found]

    return [item for item in _fetched(ctx, jobs) if item.value.startswith(incomplete)]


def _fetched(ctx: click.Context, ask: "Callable[[Gateway], Awaitable[list[Any]]]") -> list[Any]:
    """Values from the gateway; none after an error, or if it does not answer in time."""
    from gateway.client import Gateway, RetryPolicy

    async def fetch() -> list[Any]:
        url, workspace, organization = (ctx.params.get(name) for name in ("url", "workspace", "organization"))
        async with asyncio.timeout(_TIMEOUT):
            never = RetryPolicy(retries=0)
            async with Gateway(
                url, workspace_name=workspace, organization_id=organization, retry_policy=never
            ) as gateway:
                return await ask(gateway)

    try:
        return asyncio.run(fetch())
    except Exception:  # a traceback would disturb the line that the user types
        return []


def _typed(ctx: click.Context, argument: str) -> str:
    """An argument typed so far, read from the command line: click has none while it completes an option's value."""
    if ctx.params.get(argument):
        return str(ctx.params[argument])
    words = split_arg_string(os.environ.get("COMP_WORDS", ""))
    after = words[words.index(ctx.info_name) + 1 :] if ctx.info_name in words else []
    names = [each.name for each in ctx.command.params if isinstance(each, click.Argument)]
    return dict(zip(names, takewhile(lambda word: not word.startswith("-"), after), strict=False)).get(argument, "")


def _folder(ctx: click.Context) -> Path | None:
    """The folder of the kind typed so far."""
    kind = _typed(ctx, "kind").lower().replace("_", "-")
    return next((folder for folder in _folders() if folder.name == kind), None)


def _folders() -> list[Path]:
    """The folders of all kinds; none if GATEWAY_SPECS is invalid, which the commands themselves report."""
    from gateway.kinds.loading import own_folders, spec_folders
    from gateway.kinds.sources import SpecError

    try:
        return spec_folders(own_folders())
    except SpecError:
        return []


def _entity(ctx: click.Context) -> Mapping[str, Any]:
    """The spec file of the entity typed so far; {} if there is none."""
    from gateway.kinds.sources import read_yaml

    folder = _folder(ctx)
    path = folder / f"{_typed(ctx, 'entity')}.yaml" if folder else None
    return read_yaml(path) if path is not None and path.is_file() else {}


def _offered(names: Iterable[str], incomplete: str) -> list[CompletionItem]:
    return [CompletionItem(name) for name in sorted(set(names)) if name.startswith(incomplete)]
