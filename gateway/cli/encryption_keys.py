"""The encryption keys of the settings, for operators' commands."""

import click

from gateway.cli.operator import run
from gateway.foundation.vault.key_services.opening import unwrapped
from gateway.foundation.vault.key_services.service import KeyServiceError
from gateway.foundation.vault.vault import KeyList, KeyListError, WrittenKeys, read_keys
from gateway.settings import Settings


def written_keys(settings: Settings) -> WrittenKeys:
    """The keys as they are written, without a request to a key service; raises ClickException."""
    try:
        return read_keys(settings.encryption_keys, settings.encryption_keys_file)
    except KeyListError as error:
        raise click.ClickException(str(error)) from error


def unwrapped_keys(settings: Settings) -> KeyList:
    """The keys, unwrapped by their services; raises ClickException."""
    written = written_keys(settings)
    try:
        return run(lambda: unwrapped(written))
    except KeyServiceError as error:
        raise click.ClickException(str(error)) from error
