"""Watches folders of specs, and loads the catalog after each change."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from pathlib import Path

from gateway.kinds.catalog import Catalog
from gateway.kinds.loading import load_catalog
from gateway.kinds.sources import SpecError

#: seconds between two reads; a change is reported when two reads agree, so that no half-written file is loaded
INTERVAL = 0.5

#: path, modification time (ns) and size of every file
Signature = tuple[tuple[str, int, int], ...]


def signature(folders: Sequence[Path]) -> Signature:
    """A value that changes when a spec file is written, added or removed."""
    found = []
    for folder in folders:
        for path in sorted(folder.rglob("*.yaml")):
            try:
                status = path.stat()
            except FileNotFoundError:  # removed since it was listed
                continue
            found.append((str(path), status.st_mtime_ns, status.st_size))
    return tuple(found)


def changes(folders: Sequence[Path], *, interval: float = INTERVAL) -> AsyncIterator[Catalog]:
    """The catalog after each change of a file below the folders, from the call on.

    No change is reported while a folder is missing.
    """
    return _changes(folders, signature(folders), interval)


async def _changes(folders: Sequence[Path], known: Signature, interval: float) -> AsyncIterator[Catalog]:
    latest = known
    while True:
        await asyncio.sleep(interval)
        before, latest = latest, await asyncio.to_thread(signature, folders)
        if latest == known or latest != before:
            continue
        known = latest
        try:
            yield await asyncio.to_thread(load_catalog, folders)
        except SpecError:  # a folder is missing
            continue
