"""What a shell offers after TAB: kinds, entities and actions, from the names of the shipped spec files alone."""

import click
from click.shell_completion import CompletionItem


def complete_kind(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    from gateway.connectors.catalog import spec_folders

    return _offered((folder.name for folder in spec_folders()), incomplete)


def complete_entity(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    from gateway.connectors.catalog import spec_folders

    folder = next((folder for folder in spec_folders() if folder.name == _kind(ctx)), None)
    if folder is None:
        return []
    return _offered((path.stem for path in folder.glob("*.yaml") if path.name != "connector.yaml"), incomplete)


def complete_action(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    from gateway.connectors.catalog import SEARCH_ACTION, spec_folders
    from gateway.connectors.sources import read_yaml

    folder = next((folder for folder in spec_folders() if folder.name == _kind(ctx)), None)
    path = folder / f"{ctx.params.get('entity')}.yaml" if folder else None
    if path is None or not path.is_file():
        return []
    entity = read_yaml(path)
    return _offered([*entity["actions"], *([SEARCH_ACTION] if "search" in entity else [])], incomplete)


def _kind(ctx: click.Context) -> str:
    return str(ctx.params.get("kind", "")).lower().replace("_", "-")


def _offered(names: object, incomplete: str) -> list[CompletionItem]:
    return [CompletionItem(name) for name in sorted(names) if name.startswith(incomplete)]  # type: ignore[call-overload]
