"""What a process caches until it is notified of a change."""

import asyncio
from uuid import UUID, uuid4

import pytest

from gateway.errors import NotFound
from gateway.foundation.aio.notified_cache import NotifiedCache
from gateway.foundation.aio.turns import compute_for


class Rows:
    """Rows with an owner each, how often they were read, and whether the process is notified of changes."""

    def __init__(self) -> None:
        self.owners: dict[UUID, UUID] = {}
        self.reads = 0
        self.is_current = True
        #: set: reads return
        self.answers = asyncio.Event()
        self.answers.set()
        #: set: there was a read
        self.asked = asyncio.Event()

    async def read(self, key: UUID) -> UUID:
        self.reads += 1
        self.asked.set()
        owner = self.owners.get(key)
        await self.answers.wait()
        if owner is None:
            raise NotFound("there is no such row")
        return owner

    def cache(self, *, unnotified: float = 1000.0, seconds: float = 1000.0) -> NotifiedCache[UUID, UUID]:
        return NotifiedCache(
            self.read,
            lambda: self.is_current,
            unnotified=unnotified,
            max_cached=2,
            subjects=lambda key, owner: (key, owner),
            seconds=lambda owner: seconds,
        )


@pytest.fixture
async def rows() -> Rows:
    rows = Rows()
    rows.owners = {uuid4(): uuid4() for _ in range(3)}
    return rows


async def test_a_value_is_read_once_while_the_process_is_notified(rows: Rows):
    cache, (key, owner) = rows.cache(unnotified=0), next(iter(rows.owners.items()))

    assert [await cache.get(key), await cache.get(key)] == [owner, owner]

    assert rows.reads == 1


async def test_a_value_is_read_again_while_notifications_may_be_missed(rows: Rows):
    cache, key = rows.cache(unnotified=0), next(iter(rows.owners))
    await cache.get(key)

    rows.is_current = False
    await cache.get(key)

    assert rows.reads == 2


async def test_without_notifications_a_value_is_used_for_its_seconds(rows: Rows):
    cache, key = rows.cache(), next(iter(rows.owners))
    rows.is_current = False

    await cache.get(key)
    await cache.get(key)

    assert rows.reads == 1


async def test_a_value_that_has_expired_is_read_again_by_a_process_that_is_notified(rows: Rows):
    cache, key = rows.cache(seconds=0), next(iter(rows.owners))

    await cache.get(key)
    await cache.get(key)

    assert rows.reads == 2


@pytest.mark.parametrize("subject", ["key", "owner", "*"])
async def test_a_notification_of_a_subject_ends_its_values_alone(rows: Rows, subject: str):
    cache, (first, other, _) = rows.cache(), rows.owners
    await cache.get(first)
    await cache.get(other)

    cache.on_notify({"key": str(first), "owner": str(rows.owners[first]), "*": "*"}[subject])
    rows.owners[first] = rows.owners[other] = uuid4()

    assert await cache.get(first) == rows.owners[first]
    assert (await cache.get(other) == rows.owners[other]) is (subject == "*")


async def test_a_value_that_was_read_before_a_notification_is_not_used_after_it(rows: Rows):
    cache, (key, owner) = rows.cache(), next(iter(rows.owners.items()))
    rows.answers.clear()
    reading = asyncio.create_task(cache.get(key))
    await rows.asked.wait()

    del rows.owners[key]
    cache.on_notify(str(owner))
    rows.answers.set()

    assert await reading == owner
    with pytest.raises(NotFound):
        await cache.get(key)


async def test_the_least_recently_used_value_is_dropped(rows: Rows):
    cache, (first, second, third) = rows.cache(), rows.owners
    for key in (first, second, first, third, first):
        await cache.get(key)

    assert rows.reads == 3
    await cache.get(second)
    assert rows.reads == 4


async def test_nothing_is_kept_of_values_that_were_dropped(rows: Rows):
    cache = rows.cache()
    for key in rows.owners:
        await cache.get(key)
    for key in rows.owners:
        cache.on_notify(str(key))

    assert (cache._cached, cache._keys) == ({}, {})


async def test_the_values_of_one_organization_drive_out_none_of_another(rows: Rows):
    cache, [polite, *hostile] = rows.cache(), rows.owners
    compute_for("polite")
    await cache.get(polite)

    compute_for("hostile")
    for key in (*hostile, *hostile):
        await cache.get(key)

    reads = rows.reads
    await cache.get(polite)
    assert rows.reads == reads


async def test_a_row_that_is_gone_is_not_cached(rows: Rows):
    cache, key = rows.cache(seconds=0), next(iter(rows.owners))
    await cache.get(key)

    del rows.owners[key]

    with pytest.raises(NotFound):
        await cache.get(key)
    assert cache.peek(key) is None
