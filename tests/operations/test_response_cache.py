"""Remembered answers: for whom, how long, how many, and forgotten by writes in every process."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from uuid import UUID, uuid4

import msgspec
import pytest

from gateway.access.audit.entry import Entry
from gateway.errors import Unavailable
from gateway.foundation.aio.turns import compute_for
from gateway.foundation.db.notifications import WRITTEN, NotificationListener
from gateway.foundation.db.pool import Database
from gateway.operations.response_cache import WRITING, AuditedWrite, Freshness, ResponseCache, key_of
from gateway.upstream.prepared import PreparedCall
from gateway.upstream.responses import OperationResult
from tests.harness.postgres_relay import postgres_relay
from tests.harness.waiting import eventually
from tests.kinds.small_kind import small_operation

OPERATION = small_operation({"params": {"id": {}}})


class Application:
    """Answers with how often it was asked, once it may."""

    def __init__(self, size: int = 0) -> None:
        self.asked = 0
        self.size = size
        self.is_asked = asyncio.Event()
        self.may_answer = asyncio.Event()
        self.may_answer.set()

    async def __call__(self) -> OperationResult:
        self.asked += 1
        self.is_asked.set()
        body = msgspec.json.encode([self.asked, "x" * self.size])
        await self.may_answer.wait()
        return OperationResult(result=msgspec.Raw(body))


class LoggedDatabase:
    """A database that remembers the statements of its users."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self.statements: list[str] = []

    @asynccontextmanager
    async def system(self):
        async with self._database.system() as connection:
            with connection.query_logger(lambda record: self.statements.append(record.query)):
                yield connection


def key(connector_id: UUID, **params: object):
    return key_of(connector_id, PreparedCall.of(OPERATION, params))


def opened_cache(database: Database, is_current=lambda: True) -> ResponseCache:
    return ResponseCache(database, 100_000, is_current)


@pytest.fixture
def cache(database) -> ResponseCache:
    return opened_cache(database)


@pytest.mark.parametrize(
    ("lines", "freshness"),
    [
        ([], None),
        (["no-store"], None),
        (["max-age=x"], None),
        (["max-age=5, no-cache"], None),
        (["max-age=5"], Freshness(5)),
        (['Max-Age="5"'], Freshness(5)),
        (["max-age=5, no-store"], Freshness(5, may_store=False)),
        (["only-if-cached"], Freshness(None, only_if_cached=True)),
        (["only-if-cached", "max-age=0"], Freshness(0, only_if_cached=True)),
        (["max-age=99999999999999"], Freshness(2**31)),
        (["max-age=5, only-if-cached, no-cache"], Freshness(-1, only_if_cached=True)),
    ],
)
def test_what_a_caller_accepts_is_read_from_its_directives(lines, freshness):
    assert Freshness.of(lines) == freshness


async def test_an_answer_is_remembered_for_those_who_accept_its_age(cache):
    same, application = key(uuid4(), id=1), Application()

    await cache.fetch(same, application, Freshness(5))

    assert cache.find(same, 5).answer.decoded()[0] == 1
    assert cache.find(same, None) is not None
    assert cache.find(same, -1) is None


async def test_an_answer_that_came_after_a_caller_looked_is_not_asked_for_again(cache):
    same, application = key(uuid4(), id=1), Application()

    looked = cache.find(same, 5)
    await cache.fetch(same, application, Freshness(5))
    late = await cache.fetch(same, application, Freshness(5))

    assert (looked, application.asked) == (None, 1)
    assert late.decoded()[0] == 1


@pytest.mark.parametrize("other", [{"id": 2}, {}])
async def test_another_call_has_another_answer(cache, other):
    connector_id = uuid4()

    await cache.fetch(key(connector_id, id=1), Application(), Freshness(5))

    assert cache.find(key(connector_id, **other), 5) is None
    assert cache.find(key(uuid4(), id=1), 5) is None


async def test_equal_calls_in_flight_are_asked_once(cache):
    same, application = key(uuid4(), id=1), Application()
    application.may_answer.clear()

    asking = [asyncio.create_task(cache.fetch(same, application, Freshness(5, may_store=False))) for _ in range(1000)]
    await application.is_asked.wait()
    application.may_answer.set()
    answers = await asyncio.gather(*asking)

    assert application.asked == 1
    assert len(answers) == 1000
    assert cache.find(same, 5) is None


async def test_a_caller_that_disconnects_takes_no_answer_with_it(cache):
    same, application = key(uuid4(), id=1), Application()
    application.may_answer.clear()

    first, second = (asyncio.create_task(cache.fetch(same, application, Freshness(5))) for _ in range(2))
    await application.is_asked.wait()
    first.cancel()
    application.may_answer.set()

    assert (await second).decoded()[0] == 1


async def test_a_write_forgets_what_was_remembered_and_what_is_under_way(cache):
    connector_id, other, application = uuid4(), uuid4(), Application()
    remembered, under_way, others = key(connector_id, id=1), key(connector_id, id=2), key(other, id=1)
    await cache.fetch(remembered, Application(), Freshness(5))
    await cache.fetch(others, Application(), Freshness(5))
    application.may_answer.clear()
    stale = asyncio.create_task(cache.fetch(under_way, application, Freshness(5)))
    await application.is_asked.wait()

    async with cache.writing(connector_id):
        pass
    application.is_asked.clear()
    fresh = asyncio.create_task(cache.fetch(under_way, application, Freshness(5)))
    await application.is_asked.wait()
    application.may_answer.set()

    assert (await stale).decoded()[0] == 1
    assert (await fresh).decoded()[0] == 2
    assert cache.find(remembered, 5) is None
    assert cache.find(under_way, 5).answer.decoded()[0] == 2
    assert cache.find(others, 5) is not None


@pytest.fixture
async def elsewhere(database, database_url) -> AsyncIterator[ResponseCache]:
    """The cache of another process."""
    listener = NotificationListener(database_url)
    cache = opened_cache(database, listener.is_current)
    listener.subscribe({WRITING: cache.on_writing, WRITTEN: cache.on_notify}, cache.invalidate_all)
    async with listener.listening():
        await eventually(listener.is_current)
        yield cache


async def test_a_write_forgets_in_every_process(cache, elsewhere):
    same = key(uuid4(), id=1)
    await elsewhere.fetch(same, Application(), Freshness(5))

    async with cache.writing(same[0]):
        pass

    assert await eventually(lambda: elsewhere.find(same, 60) is None)


async def test_nothing_is_remembered_in_any_process_while_a_write_is_under_way(cache, elsewhere):
    same = key(uuid4(), id=1)
    await elsewhere.fetch(same, Application(), Freshness(5))

    async with cache.writing(same[0]):
        await eventually(lambda: elsewhere.find(same, 60) is None)
        for each in (cache, elsewhere):
            await each.fetch(same, Application(), Freshness(5))
        during = [each.find(same, 60) for each in (cache, elsewhere)]

    await eventually(lambda: _is_remembered(elsewhere, same))
    assert during == [None, None]


async def _is_remembered(cache: ResponseCache, same) -> bool:
    await cache.fetch(same, Application(), Freshness(5))
    return cache.find(same, 60) is not None


async def test_one_write_of_two_does_not_end_the_other(cache):
    same = key(uuid4(), id=1)

    async with cache.writing(same[0]):
        async with cache.writing(same[0]):
            pass
        await cache.fetch(same, Application(), Freshness(5))

        assert cache.find(same, 60) is None


async def test_a_write_that_cannot_be_announced_is_not_begun():
    async with Database.open("postgresql://127.0.0.1:1/gateway", is_patient=True) as away:
        with pytest.raises(Unavailable):
            async with opened_cache(away).writing(uuid4()):
                pytest.fail("it was begun")


async def test_the_end_of_a_write_is_announced_once_postgres_takes_it(database_url, elsewhere):
    same = key(uuid4(), id=1)
    async with postgres_relay(database_url) as relay, Database.open(relay.url) as cut_off:
        cache = opened_cache(cut_off)
        await elsewhere.fetch(same, Application(), Freshness(5))
        async with cache.writing(same[0]):
            await eventually(lambda: elsewhere.find(same, 60) is None)
            relay.is_open = False
            relay.cut()
        await elsewhere.fetch(same, Application(), Freshness(5))
        before = elsewhere.find(same, 60)

        relay.is_open = True
        await eventually(lambda: _is_remembered(elsewhere, same), within=30)

    assert before is None


async def test_nothing_is_remembered_while_other_processes_cannot_be_heard_of(database):
    is_current = True
    cache, same = opened_cache(database, lambda: is_current), key(uuid4(), id=1)
    await cache.fetch(same, Application(), Freshness(5))
    before = cache.find(same, 60)

    is_current = False
    during = cache.find(same, 60)

    assert before is not None
    assert during is None


async def test_the_memory_is_capped_and_the_least_used_goes_first(cache):
    connector_id = uuid4()
    for number in range(12):
        await cache.fetch(key(connector_id, id=number), Application(size=8000), Freshness(5))
        assert cache.find(key(connector_id, id=0), 60) is not None

    left = [number for number in range(12) if cache.find(key(connector_id, id=number), 60)]

    assert left[0] == 0
    assert 1 not in left
    assert left[-1] == 11


async def test_the_answers_of_one_organization_drive_out_none_of_another(cache):
    polite, hostile = uuid4(), uuid4()
    compute_for("polite")
    await cache.fetch(key(polite, id=0), Application(size=8000), Freshness(5))

    compute_for("hostile")
    for number in range(100):
        await cache.fetch(key(hostile, id=number), Application(size=8000), Freshness(5))

    assert cache.find(key(polite, id=0), 60) is not None
    assert cache.find(key(hostile, id=99), 60) is not None


async def test_an_answer_that_would_fill_the_memory_is_not_kept(cache):
    huge = key(uuid4(), id=1)

    await cache.fetch(huge, Application(size=50_000), Freshness(5))

    assert cache.find(huge, 60) is None


@pytest.mark.parametrize(
    ("max_bytes", "is_audited", "notifications", "statements"),
    [(100_000, False, 2, 2), (100_000, True, 2, 2), (0, False, 0, 0), (0, True, 0, 2)],
)
async def test_without_memory_a_write_sends_no_notification_and_only_its_audit_entries(
    database, max_bytes, is_audited, notifications, statements
):
    logged = LoggedDatabase(database)
    cache = ResponseCache(logged, max_bytes, lambda: True)
    entry = Entry(what="tickets.update", organization_id=uuid4(), connector_id=uuid4())
    audited = AuditedWrite(entry.intent_of(uuid4()), note=lambda _: None) if is_audited else None

    async with cache.writing(uuid4(), audited):
        if audited is not None:
            entry.settle("succeeded")
            audited.settlement = entry

    assert len(logged.statements) == statements
    assert sum("pg_notify" in statement for statement in logged.statements) == notifications


async def test_without_memory_equal_calls_share_nothing(database):
    cache, application, same = ResponseCache(database, 0, lambda: True), Application(), key(uuid4(), id=1)

    answers = await asyncio.gather(*(cache.fetch(same, application, Freshness(5)) for _ in range(2)))

    assert [answer.decoded()[0] for answer in answers] == [1, 2]
    assert cache.find(same, None) is None
