"""What a shell offers after TAB: kinds, entities and actions, from the names of the shipped spec files alone."""

import os
from collections.abc import Iterable
from pathlib import Path

import click
from click.shell_completion import CompletionItem


def complete_kind(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    from gateway.kinds.catalog import spec_folders

    return _offered((folder.name for folder in spec_folders(own_folders())), incomplete)


def complete_entity(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    folder = _folder(ctx)
    files = folder.glob("*.yaml") if folder else ()
    return _offered((path.stem for path in files if path.name != "connector.yaml"), incomplete)


def complete_action(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    from gateway.kinds.catalog import SEARCH_ACTION
    from gateway.kinds.sources import read_yaml

    folder = _folder(ctx)
    path = folder / f"{ctx.params.get('entity')}.yaml" if folder else None
    if path is None or not path.is_file():
        return []
    entity = read_yaml(path)
    return _offered([*entity["actions"], *([SEARCH_ACTION] if "search" in entity else [])], incomplete)


def own_folders() -> list[Path]:
    """The folders of kinds that do not come with the package (`GATEWAY_SPECS`)."""
    return [Path(folder) for folder in os.environ.get("GATEWAY_SPECS", "").split(os.pathsep) if folder]


def _folder(ctx: click.Context) -> Path | None:
    """The folder of the kind typed so far."""
    from gateway.kinds.catalog import spec_folders

    kind = str(ctx.params.get("kind", "")).lower().replace("_", "-")
    return next((folder for folder in spec_folders(own_folders()) if folder.name == kind), None)


def _offered(names: Iterable[str], incomplete: str) -> list[CompletionItem]:
    return [CompletionItem(name) for name in sorted(set(names)) if name.startswith(incomplete)]
