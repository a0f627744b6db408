"""`gateway keys`: the encryption keys of stored secrets, replaced while the gateway runs."""

import os
import sys
from collections.abc import Callable
from typing import Any

import click
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from gateway.cli.encryption_keys import unwrapped_keys, written_keys
from gateway.cli.local_settings import local_settings
from gateway.cli.operator import run
from gateway.cli.output import output_option, write
from gateway.connectors.key_rotation.rotation import census
from gateway.embedded.directory import write_private
from gateway.foundation.vault import key_list
from gateway.foundation.vault.key_services.opening import new_wrapped_key
from gateway.foundation.vault.key_services.service import KeyServiceError
from gateway.foundation.vault.sealed_file import recipient_key
from gateway.foundation.vault.vault import KeyList, KeyListError, WrappedKey, WrittenKeys, random_key
from gateway.run.sealed_tables import count_by_key, open_rotation
from gateway.settings import Settings

_URL = click.option(
    "--url",
    metavar="URL",
    help="Wrap the key with this key of a key service, such as awskms://alias/gateway?region=eu-central-1 or "
    "vault://vault.example.com/transit/keys/gateway.",
)
_RESTART = "Restart the front ends and workers, one after another, to load the new key list."


@click.group()
def keys() -> None:
    """Encryption keys for stored secrets.

    \b
    To replace the key of a single machine:
      gateway keys add; restart the gateway
      gateway keys rotate
      gateway keys remove OLD
    To replace it on many, without a gap:
      gateway keys add --standby; restart all
      gateway keys promote ID; restart all
      gateway keys rotate
      gateway keys remove OLD; restart all
    """


@keys.command("new")
@_URL
def new(url: str | None) -> None:
    """Print a new key in the format of GATEWAY_ENCRYPTION_KEYS."""
    click.echo(key_list.text_of([_new_key(url)]), nl=False)


@keys.command("recipient")
def recipient() -> None:
    """Print the public key for which another gateway seals an organization that is imported here."""
    click.echo(recipient_key(unwrapped_keys(local_settings())))


@keys.command("list")
@output_option
def list_keys() -> None:
    """List key ids with the number of secrets that each key wraps."""
    settings = local_settings()
    current_keys, rows = written_keys(settings), run(lambda: count_by_key(settings))
    shown: list[dict[str, Any]] = [
        {
            "id": key_id,
            "use": "seals" if number == 0 else "opens",
            "credentials": rows.pop(key_id, 0),
            **({"url": key.url} if isinstance(key, WrappedKey) else {}),
        }
        for number, (key_id, key) in enumerate(current_keys)
    ]
    shown += [{"id": key_id, "use": "missing", "credentials": count} for key_id, count in sorted(rows.items())]
    write(shown, ("id", "use", "credentials", "url"))
    sys.exit(1 if any(each["use"] == "missing" for each in shown) else 0)


@keys.command("add")
@_URL
@click.option("--standby", "is_standby", is_flag=True, help="The new key only decrypts until it is promoted.")
def add(url: str | None, is_standby: bool) -> None:
    """Add a new key to the key file; it encrypts after the next start."""
    entry = _new_key(url)
    _change(lambda keys: key_list.added(keys, entry, is_standby=is_standby))
    click.echo(f"added {entry[0]}. {_RESTART}")


@keys.command("promote")
@click.argument("key_id")
def promote(key_id: str) -> None:
    """Make a standby key the key that encrypts."""
    _change(lambda keys: key_list.promoted(keys, key_id))
    click.echo(f"{key_id} encrypts from the next start on. {_RESTART}")


@keys.command("remove")
@click.argument("key_id")
def remove(key_id: str) -> None:
    """Remove a key that wraps no stored secret."""
    settings = local_settings()
    rows = run(lambda: count_by_key(settings))
    _change(lambda keys: key_list.without(keys, key_id, rows[key_id]))
    click.echo(f"removed {key_id}. {_RESTART}")


@keys.command("rotate")
def rotate() -> None:
    """Wrap all data keys with the newest key while the gateway runs. It can be interrupted and repeated."""
    settings = local_settings()
    current_keys = unwrapped_keys(settings)
    failures = run(lambda: _rotate(settings, current_keys))
    for failure in failures:
        click.echo(f"not rotated: {failure}", err=True)
    sys.exit(1 if failures else 0)


def _new_key(url: str | None) -> tuple[str, bytes | WrappedKey]:
    """A new key, wrapped if there is a URL; raises ClickException."""
    if url is None:
        return random_key()
    try:
        return run(lambda: new_wrapped_key(url))
    except KeyServiceError as error:
        raise click.ClickException(str(error)) from error


async def _rotate(settings: Settings, current_keys: KeyList) -> list[str]:
    async with open_rotation(settings, current_keys) as rotation:
        rows = await census(rotation.database, rotation.tables)
        total = rows.total() - rows[rotation.vault.newest]
        with _bar() as bar:
            task = bar.add_task(f"to {rotation.vault.newest}", total=total)
            async for done in rotation.run():
                bar.advance(task, done)
    click.echo(f"{total - len(rotation.failures)} credentials are now wrapped by {rotation.vault.newest}")
    return rotation.failures


def _bar() -> Progress:
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    return Progress(*columns, console=Console(stderr=True))


def _change(change: Callable[[WrittenKeys], WrittenKeys]) -> None:
    """Replace the key file atomically; it keeps its owner. Raises ClickException."""
    settings = local_settings()
    if settings.encryption_keys is not None:
        raise click.ClickException(
            "the keys are in GATEWAY_ENCRYPTION_KEYS, so change them where it is set: the first key encrypts; "
            "`gateway keys new` prints a new one"
        )
    path = settings.encryption_keys_file
    current_keys = written_keys(settings)
    assert path is not None
    try:
        changed = key_list.text_of(change(current_keys))
        owner = path.stat()
        write_private(path, changed)
        if os.geteuid() == 0:
            os.chown(path, owner.st_uid, owner.st_gid)
    except KeyListError as error:
        raise click.ClickException(str(error)) from error
    except OSError as error:
        raise click.ClickException(f"the key file {path} cannot be changed: {error.strerror}") from error
