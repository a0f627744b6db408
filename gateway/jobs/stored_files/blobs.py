"""Storage of files: a folder by default, an S3-compatible bucket by setting. Half-written files are not visible."""

import asyncio
import contextlib
import errno
import os
import shutil
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO, Protocol, TypeVar

from gateway.errors import ResultExpired, Unavailable
from gateway.upstream.http_ranges.ranges import Slice

#: bytes written at a time
_WRITE_SIZE = 1 << 20
#: bytes read at a time
_READ_SIZE = 256 << 10
#: names listed at a time
_LIST_SIZE = 1000
_PARTIAL = ".part"
#: seconds until a file is stored again after the disk was full
_RETRY_AFTER = 15
#: the part of the disk that does not count as free, because other processes write to it too
_RESERVE = 0.05

Done = TypeVar("Done")


class Blob(Protocol):
    """Stored bytes, open for reading."""

    def read(self, part: Slice) -> AsyncIterator[bytes]:
        """The bytes of a part, in chunks."""


class Blobs(Protocol):
    """A store of byte strings by name; a name is `owner/item`, of characters that are safe in paths."""

    async def put(self, name: str, chunks: AsyncIterator[bytes]) -> None:
        """Store all the chunks, or nothing if they raise an error."""

    def open(self, name: str, size: int) -> AbstractAsyncContextManager[Blob]:
        """The stored bytes; raises ResultExpired if they are missing or have another size."""

    async def delete(self, names: Sequence[str]) -> None:
        """Delete the blobs with these names; missing ones are ignored."""

    def names(self) -> AsyncIterator[Sequence[str]]:
        """All names in batches, including those of incomplete blobs."""

    async def free(self) -> int | None:
        """How many bytes may be added; None if the store has no limit that can be read."""


def gone() -> ResultExpired:
    """The error for a stored file that has been deleted."""
    return ResultExpired("the stored file is gone; download it again")


class FolderBlobs:
    """Blobs as files of one folder, which all processes of the gateway must share."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    async def put(self, name: str, chunks: AsyncIterator[bytes]) -> None:
        path = self._folder / name
        partial = path.with_name(path.name + _PARTIAL)
        file = await _on_disk(_created, partial)
        try:
            with file:
                async for block in blocks(chunks, _WRITE_SIZE):
                    await _on_disk(_write_all, file.fileno(), block)
                await _on_disk(os.fsync, file.fileno())
            partial.rename(path)
        except BaseException:
            partial.unlink(missing_ok=True)
            raise

    @asynccontextmanager
    async def open(self, name: str, size: int) -> AsyncIterator[Blob]:
        try:
            file = await asyncio.to_thread((self._folder / name).open, "rb", 0)
        except FileNotFoundError as error:
            raise gone() from error
        with file:
            if os.fstat(file.fileno()).st_size != size:
                raise gone()
            yield _OpenFile(file.fileno())

    async def delete(self, names: Sequence[str]) -> None:
        def delete() -> None:
            for name in names:
                path = self._folder / name
                path.unlink(missing_ok=True)
                path.with_name(path.name + _PARTIAL).unlink(missing_ok=True)

        await asyncio.to_thread(delete)

    async def names(self) -> AsyncIterator[Sequence[str]]:
        listed = await asyncio.to_thread(lambda: list(self._listed()))
        for start in range(0, len(listed), _LIST_SIZE):
            yield listed[start : start + _LIST_SIZE]

    async def free(self) -> int:
        return await asyncio.to_thread(self._free)

    def _free(self) -> int:
        existing = next(each for each in (self._folder.absolute(), *self._folder.absolute().parents) if each.exists())
        usage = shutil.disk_usage(existing)
        return max(0, usage.free - int(usage.total * _RESERVE))

    def _listed(self) -> Iterator[str]:
        for path in self._folder.glob("*/*"):
            yield f"{path.parent.name}/{path.name.removesuffix(_PARTIAL)}"


@dataclass(frozen=True, slots=True)
class _OpenFile:
    descriptor: int

    async def read(self, part: Slice) -> AsyncIterator[bytes]:
        position, end = part.start, part.end + 1
        while position < end:
            chunk = await asyncio.to_thread(os.pread, self.descriptor, min(_READ_SIZE, end - position), position)
            if not chunk:
                raise gone()
            position += len(chunk)
            yield chunk


async def blocks(chunks: AsyncIterator[bytes], min_size: int) -> AsyncIterator[bytes]:
    """The same bytes in blocks of at least `min_size`; the last may be smaller."""
    pending: list[bytes] = []
    size = 0
    async for chunk in chunks:
        pending.append(chunk)
        size += len(chunk)
        if size >= min_size:
            yield b"".join(pending)
            pending, size = [], 0
    if pending:
        yield b"".join(pending)


async def _on_disk(call: Callable[..., Done], *arguments: Any) -> Done:
    """Run in a thread; raises Unavailable for errors that end when the operator frees space or repairs the disk."""
    try:
        return await asyncio.to_thread(call, *arguments)
    except OSError as error:
        reason = errno.errorcode.get(error.errno or 0, "an error")
        raise Unavailable(f"the folder of stored files cannot take it: {reason}", retry_after=_RETRY_AFTER) from error


def _write_all(descriptor: int, block: bytes) -> None:
    """Write the whole block: on a disk that is almost full, one call may write only a part."""
    left = memoryview(block)
    while left:
        left = left[os.write(descriptor, left) :]


def _created(path: Path) -> BinaryIO:
    _make_private(path.parent)
    return os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb", 0)


def _make_private(folder: Path) -> None:
    """Create the folder and its missing parents with mode 0700, whatever the umask; existing ones keep their mode."""
    missing = [each for each in (folder, *folder.parents) if not each.exists()]
    for each in reversed(missing):
        with contextlib.suppress(FileExistsError):  # another task or process has created it
            each.mkdir(mode=0o700)
            each.chmod(0o700)


async def read_all(blob: Blob, body: Iterable[bytes | Slice]) -> AsyncIterator[bytes]:
    """The bytes of a response's body, with each slice replaced by its bytes of the blob."""
    for segment in body:
        if isinstance(segment, bytes):
            yield segment
        else:
            async for part in blob.read(segment):
                yield part
