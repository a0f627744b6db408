"""Blobs in an S3-compatible bucket; its endpoint and keys are in the AWS_… variables of the environment."""

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

import obstore
from obstore.exceptions import BaseError
from obstore.store import S3Store

from gateway.errors import Unavailable
from gateway.jobs.stored_files.blobs import Blob, gone
from gateway.upstream.http_ranges.ranges import Slice

#: bytes of one part of an upload; S3 requires at least 5 MiB and at most 10,000 parts
_PART = 16 << 20
#: bytes of one chunk read
_READ_SIZE = 256 << 10
#: concurrent parts of one upload
_CONCURRENCY = 2
_LIST_SIZE = 1000


class BucketBlobs:
    """Blobs as objects; an upload that fails is aborted, so that no incomplete object is visible."""

    def __init__(self, url: str, **options: Any) -> None:
        self._store = S3Store.from_url(url, **options)

    async def put(self, name: str, chunks: AsyncIterator[bytes]) -> None:
        try:
            await obstore.put_async(self._store, name, chunks, chunk_size=_PART, max_concurrency=_CONCURRENCY)
        except BaseError as error:
            raise _unavailable() from error

    @asynccontextmanager
    async def open(self, name: str, size: int) -> AsyncIterator[Blob]:
        try:
            head = await obstore.head_async(self._store, name)
        except FileNotFoundError as error:
            raise gone() from error
        except BaseError as error:
            raise _unavailable() from error
        if head["size"] != size:
            raise gone()
        yield _Object(self._store, name)

    async def delete(self, names: Sequence[str]) -> None:
        try:
            await obstore.delete_async(self._store, names)
        except BaseError as error:
            raise _unavailable() from error

    async def names(self) -> AsyncIterator[Sequence[str]]:
        try:
            async for page in obstore.list(self._store, chunk_size=_LIST_SIZE):
                yield [item["path"] for item in page]
        except BaseError as error:
            raise _unavailable() from error

    async def free(self) -> None:
        return None


@dataclass(frozen=True, slots=True)
class _Object:
    store: S3Store
    name: str

    async def read(self, part: Slice) -> AsyncIterator[bytes]:
        try:
            response = await obstore.get_async(self.store, self.name, options={"range": (part.start, part.end + 1)})
            async for chunk in response.stream(min_chunk_size=_READ_SIZE):
                yield bytes(chunk)
        except FileNotFoundError as error:
            raise gone() from error
        except BaseError as error:
            raise _unavailable() from error


def _unavailable() -> Unavailable:
    return Unavailable("the store of files cannot be reached", retry_after=5)
