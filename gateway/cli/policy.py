"""`gateway policy`: store policies from files, and try them by a table of cases."""

import asyncio
import re
import sys
from datetime import timedelta
from pathlib import Path
from typing import Any

import click
import msgspec
import yaml

from gateway.cli.client_session import calls_gateway, shows
from gateway.cli.failures import EXIT_CODES, Exit, note
from gateway.cli.output import output_option, write
from gateway.cli.progress import follow
from gateway.client import Gateway
from gateway.contract.policies import PolicyEffectView, PolicyMode
from gateway.foundation.aio.clock import CLOCK

_FILE = click.Path(dir_okay=False, path_type=Path)
_COLUMNS = ("name", "version", "mode", "description", "created_at")
_CASE_COLUMNS = ("case", "operation", "expected", "decision", "policies")


_AGE = re.compile(r"([1-9]\d{0,5})([mhd])")
_UNITS = {"m": "minutes", "h": "hours", "d": "days"}


def read_age(ctx: click.Context, param: click.Parameter, text: str) -> timedelta:
    found = _AGE.fullmatch(text)
    if found is None:
        raise click.BadParameter(f"{text!r} is not a duration such as 90m, 12h or 7d")
    return timedelta(**{_UNITS[found[2]]: int(found[1])})


@click.group(epilog=EXIT_CODES)
def policy() -> None:
    """Policies: what clients may do beyond their scopes, in Cedar."""


@policy.command()
@click.argument("file", type=_FILE)
@click.option("--name", metavar="NAME", help="Name of the policy; by default the file's name without its extension.")
@click.option(
    "--mode",
    type=click.Choice([mode.value for mode in PolicyMode]),
    default=PolicyMode.ENFORCE.value,
    help="`shadow` only reports.",
)
@click.option("--description", metavar="TEXT", help="Description of the policy.")
@calls_gateway
async def apply(gateway: Gateway, file: Path, name: str | None, mode: str, description: str | None) -> None:
    """Store the policy in FILE, and print what it would have refused over the last day."""
    cedar = await asyncio.to_thread(_text, file)
    stored = await gateway.policies.put(name or file.stem, cedar, mode=mode, description=description)
    note(f"{stored.name} is stored as version {stored.version}, mode {stored.mode}")
    if stored.would_have is not None:
        _note_effect(stored.would_have)


@policy.command("list")
@shows(*_COLUMNS)
async def list_policies(gateway: Gateway) -> Any:
    """List the policies by name."""
    return await gateway.policies.list()


@policy.command()
@click.argument("name")
@calls_gateway
async def delete(gateway: Gateway, name: str) -> None:
    """Delete a policy."""
    await gateway.policies.delete(name)
    note(f"{name} is deleted")


@policy.command()
@click.argument("file", type=_FILE)
@output_option
@calls_gateway
async def test(gateway: Gateway, file: Path) -> None:
    """Decide the cases of FILE and compare each with its `expect`; exit code 1 if one differs.

    FILE is YAML or JSON: `cases`, each with `operation` and `expect` (allow, deny or approve), and if needed `client`,
    `connector_id`, `params` and `surface`; and if needed `policies`, the paths of files with policies. Without
    `policies` the stored ones decide. Nothing is sent to applications.
    """
    document = await asyncio.to_thread(_read, file)
    cases = [{name: value for name, value in case.items() if name != "expect"} for case in document["cases"]]
    expected = [case.get("expect", "allow") for case in document["cases"]]
    policies = [_policy(file.parent / path) for path in document["policies"]] if "policies" in document else None
    checked = await gateway.policies.check(cases, policies)
    rows = [
        {
            "case": index,
            "operation": case["operation"],
            "expected": wanted,
            "decision": each.decision,
            "policies": ", ".join(each.policies),
        }
        for index, (case, wanted, each) in enumerate(zip(cases, expected, checked, strict=True))
    ]
    write(rows, _CASE_COLUMNS)
    right = sum(wanted == each.decision for wanted, each in zip(expected, checked, strict=True))
    note(f"{right} of {len(rows)} cases are decided as expected")
    if right != len(rows):
        sys.exit(Exit.REFUSED)


@policy.command()
@click.argument("files", type=_FILE, nargs=-1)
@click.option("--since", metavar="AGE", default="7d", callback=read_age, help="How far back: 90m, 12h or 7d (default).")
@calls_gateway
async def replay(gateway: Gateway, files: tuple[Path, ...], since: timedelta) -> None:
    """Count what the policies in FILES would have decided of the calls in the audit log.

    Without FILES all stored policies decide, also those in the mode `shadow`. Nothing is sent to applications.
    """
    policies = [await asyncio.to_thread(_policy, file) for file in files] or None
    job = await gateway.policies.replay(CLOCK.now() - since, policies)
    effect = msgspec.convert((await (await follow(job)).result()).result, PolicyEffectView)
    write(msgspec.to_builtins(effect))
    _note_effect(effect, "the calls")


def _note_effect(effect: PolicyEffectView, calls: str = "the last day's calls") -> None:
    note(
        f"of {calls} it would have refused {effect.refused}, asked about {effect.asked} and redacted "
        f"{effect.redacted}; {effect.undecided} depend on their params"
    )
    for client in effect.by_client:
        if client.refused:
            note(f"  {client.name or client.id}: {client.refused} refused")


def _read(file: Path) -> dict[str, Any]:
    """The table of cases; raises click.UsageError if it is none."""
    try:
        document: Any = yaml.safe_load(_text(file))
    except yaml.YAMLError as error:
        raise click.UsageError(f"{file} is not YAML: {error}") from error
    cases = document.get("cases") if isinstance(document, dict) else None
    if not isinstance(cases, list) or not all(isinstance(case, dict) and "operation" in case for case in cases):
        raise click.UsageError(f"{file} needs cases: a list, each with an operation")
    policies = document.get("policies", [])
    if not isinstance(policies, list) or not all(isinstance(path, str) for path in policies):
        raise click.UsageError(f"{file}: policies is a list of files with policies in Cedar")
    return dict(document)


def _policy(path: Path) -> dict[str, str]:
    return {"name": path.stem, "cedar": _text(path)}


def _text(path: Path) -> str:
    try:
        return path.read_text("utf-8")
    except OSError as error:
        raise click.UsageError(f"{path} cannot be read: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise click.UsageError(f"{path} is not text in UTF-8") from error
