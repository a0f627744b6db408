"""`gateway specs`: check, show and describe the specs of kinds."""

import asyncio
import re
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click

from gateway.cli.arguments import PARAMS_HELP, read_params
from gateway.cli.output import Format, output_option, write
from gateway.cli.shell_completion import complete_action, complete_entity, complete_kind, complete_param
from gateway.cli.spec_import import diff_specs, import_spec, into_option, kind_or_folder
from gateway.kinds.catalog import Kind
from gateway.kinds.describe import kind_summary, kind_view
from gateway.kinds.editor_schema import editor_schema_text
from gateway.kinds.lint.kind import lint
from gateway.kinds.loading import spec_folders
from gateway.kinds.sources import SpecError
from gateway.kinds.spec import KIND_NAME
from gateway.kinds.starter import starter_files
from gateway.settings import settings_of


@click.group()
def specs() -> None:
    """Make, import, check, show and compare the specs of kinds."""


specs.add_command(import_spec)
specs.add_command(diff_specs)


@specs.command("lint")
@click.argument("folders", nargs=-1, type=click.Path(exists=True, file_okay=False, path_type=Path))
def lint_specs(folders: Sequence[Path]) -> None:
    """Check specs and print each error with file and line.

    Without FOLDERS, all loaded specs are checked.
    """
    found = [kind for folder in folders for kind in _kinds_in(folder)] or _known_folders()
    errors = [error for folder in found for error in lint(folder)]
    for error in errors:
        click.echo(str(error))
    click.echo(f"kinds: {len(found)}, errors: {len(errors)}", err=True)
    sys.exit(1 if errors else 0)


def _kinds_in(folder: Path) -> list[Path]:
    """The folder itself if it is a kind's, else the folders of kinds in it."""
    inside = sorted(path.parent for path in folder.glob("*/connector.yaml"))
    return [folder] if (folder / "connector.yaml").exists() or not inside else inside


def _known_folders() -> list[Path]:
    try:
        return spec_folders(settings_of().specs)
    except SpecError as error:
        raise click.ClickException(str(error)) from error


@specs.command("show")
@click.argument("kind")
@click.argument("entity", required=False)
@click.argument("action", required=False)
@output_option
def show_spec(kind: str, entity: str | None, action: str | None) -> None:
    """Show a spec. KIND is the name of a loaded kind, or a folder."""
    write(_shown(_kind(kind), entity, action), default=Format.JSON)


def _kind(name: str) -> Kind:
    try:
        return kind_or_folder(name)
    except SpecError as error:
        raise click.ClickException(str(error)) from error


def _shown(kind: Kind, entity: str | None, action: str | None) -> dict[str, Any]:
    if entity is None:
        return kind_summary(kind)
    kind.entity(entity)
    if action is None:
        shown: dict[str, Any] = kind_view(kind)["entities"][entity]
        return shown
    operation = kind.operation(entity, action)
    view: dict[str, Any] = kind_view(kind)["entities"][entity]["actions"][operation.action_id]
    placed = {each.name: f"{each.where}: {each.wire}" for each in operation.placements}
    return {"request": operation.action.request, "placed": placed, **view}


@specs.command("new")
@click.argument("kind")
@into_option
def new_spec(kind: str, root: Path) -> None:
    """Create the folder of a new kind. It contains connector.yaml and one entity, ready to be changed and tried."""
    if not re.fullmatch(KIND_NAME, kind):
        raise click.BadParameter(
            "write lower-case letters, digits and hyphens, such as parcel-tracking", param_hint="KIND"
        )
    folder = root / kind
    if folder.exists():
        raise click.ClickException(f"{folder} exists already; choose another name, or edit its files")
    folder.mkdir(parents=True)
    for name, text in starter_files(kind).items():
        (folder / name).write_text(text, "utf-8")
        click.echo(str(folder / name))
    click.echo(f"next: gateway specs lint {folder}; gateway specs try {folder} items list", err=True)


@specs.command("try", epilog=PARAMS_HELP)
@click.argument("kind", shell_complete=complete_kind)
@click.argument("entity", shell_complete=complete_entity)
@click.argument("action", shell_complete=complete_action)
@click.argument("params", nargs=-1, shell_complete=complete_param)
@output_option
def try_spec(kind: str, entity: str, action: str, params: Sequence[str]) -> None:
    """Call one action in the sandbox and show request and response.

    KIND is a name or a folder. Without PARAMS, the params of the action's example are sent. No request leaves this
    machine.
    """
    # imported here because the sandbox and the engine are slow to import
    from gateway.cli.spec_trial import try_action

    found = _kind(kind)
    operation = found.operation(entity, action)
    given = read_params(params, operation.schema) if params else dict(operation.action.example)
    shown, failure = asyncio.run(try_action(found, entity, action, given))
    write(shown, default=Format.JSON)
    if failure is not None:
        raise failure


@specs.command("schema")
def print_schema() -> None:
    """Print the JSON Schema of spec files, for completion and checks in editors."""
    click.echo(editor_schema_text(), nl=False)
