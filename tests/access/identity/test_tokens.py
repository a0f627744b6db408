"""Bearer tokens: issued for the right secret only, kept as hashes, ended at once."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from uuid import uuid4

import pytest

from gateway.access.identity.attempts import MAX_BY_ADDRESS, MAX_BY_ID, REMEMBERED, WINDOW, Attempts
from gateway.access.identity.store import IdentityStore
from gateway.access.identity.tokens import Tokens, hashed, new_secret
from gateway.errors import RateLimited, Unauthorized
from gateway.foundation.db.notifications import NotificationListener
from gateway.foundation.db.pool import Database
from tests.access.identity.conftest import SECONDS, SECRET, Account
from tests.harness.postgres_relay import postgres_relay
from tests.harness.waiting import eventually


async def test_a_token_proves_its_client(tokens: Tokens, account: Account):
    issued = await tokens.issue(str(account.client_id), SECRET)

    client = await tokens.verify(issued.access_token)

    assert client.id == account.client_id
    assert client.organization_ids == {account.organization_id}
    assert issued.expires_in == SECONDS


@pytest.mark.parametrize("client_id", ["not-a-uuid", "", "59e5a44d-4ddf-476f-a30d-26baa8e79f3b"])
async def test_a_client_that_is_not_there_is_refused_as_a_wrong_secret_is(
    tokens: Tokens, account: Account, client_id: str
):
    with pytest.raises(Unauthorized) as wrong_secret:
        await tokens.issue(str(account.client_id), "wrong")

    with pytest.raises(Unauthorized) as no_client:
        await tokens.issue(client_id, SECRET)

    assert no_client.value.detail == wrong_secret.value.detail


async def test_the_database_knows_tokens_and_secrets_by_their_hashes_only(
    tokens: Tokens, account: Account, database: Database
):
    issued = await tokens.issue(str(account.client_id), SECRET)

    async with database.system() as connection:
        tokens_kept = await connection.fetch("SELECT hash FROM tokens WHERE client_id = $1", account.client_id)
        secrets_kept = await connection.fetchval("SELECT secret_hashes FROM clients WHERE id = $1", account.client_id)

    assert [row["hash"] for row in tokens_kept] == [hashed(issued.access_token)]
    assert secrets_kept == [hashed(SECRET)]


@pytest.mark.parametrize("token", ["", "made-up", "x" * 10_000, "ünïcode"])
async def test_a_token_that_was_not_issued_is_refused(tokens: Tokens, token: str):
    with pytest.raises(Unauthorized):
        await tokens.verify(token)


async def test_an_expired_token_is_refused_though_it_was_verified_before(
    store: IdentityStore, attempts: Attempts, account: Account
):
    shortlived = Tokens(store, 0, attempts, lambda: True)
    issued = await shortlived.issue(str(account.client_id), SECRET)

    with pytest.raises(Unauthorized):
        await shortlived.verify(issued.access_token)


async def test_a_disabled_client_loses_its_tokens_at_once(tokens: Tokens, store: IdentityStore, account: Account):
    issued = await tokens.issue(str(account.client_id), SECRET)
    await tokens.verify(issued.access_token)

    await store.disable_client(account.client_id)
    tokens.on_notify(str(account.client_id))

    with pytest.raises(Unauthorized):
        await tokens.verify(issued.access_token)
    with pytest.raises(Unauthorized):
        await tokens.issue(str(account.client_id), SECRET)


async def test_lost_news_is_made_up_for_by_forgetting_everything(
    tokens: Tokens, store: IdentityStore, account: Account
):
    issued = await tokens.issue(str(account.client_id), SECRET)
    await tokens.verify(issued.access_token)

    await store.disable_client(account.client_id)
    tokens.invalidate_all()

    with pytest.raises(Unauthorized):
        await tokens.verify(issued.access_token)


async def test_news_of_one_client_leaves_the_others_remembered(tokens: Tokens, store: IdentityStore, account: Account):
    issued = await tokens.issue(str(account.client_id), SECRET)
    await tokens.verify(issued.access_token)

    await store.disable_client(account.client_id)
    tokens.on_notify(str(uuid4()))

    assert (await tokens.verify(issued.access_token)).id == account.client_id


async def test_a_disabled_organization_is_out_of_reach_of_every_token(
    tokens: Tokens, store: IdentityStore, account: Account
):
    issued = await tokens.issue(str(account.client_id), SECRET)

    await store.disable_organization(account.organization_id)

    assert (await tokens.verify(issued.access_token)).organization_ids == frozenset()


async def test_a_revoked_token_is_refused_in_every_process_at_once(
    database_url: str, tokens: Tokens, store: IdentityStore, attempts: Attempts, account: Account
):
    elsewhere, issued = (
        Tokens(store, SECONDS, attempts, lambda: True),
        await tokens.issue(str(account.client_id), SECRET),
    )
    other = await tokens.issue(str(account.client_id), SECRET)
    await elsewhere.verify(issued.access_token)

    async with _notified(database_url, elsewhere) as received:
        await tokens.revoke(str(account.client_id), SECRET, issued.access_token)
        await asyncio.wait_for(received.get(), 10)

    with pytest.raises(Unauthorized):
        await elsewhere.verify(issued.access_token)
    assert await elsewhere.verify(other.access_token)


async def test_nobody_revokes_the_token_of_another(tokens: Tokens, store: IdentityStore, account: Account):
    other = await store.create_client("other", [account.organization_id], hashed(SECRET), ["read"])
    issued = await tokens.issue(str(account.client_id), SECRET)

    await tokens.revoke(str(other), SECRET, issued.access_token)
    with pytest.raises(Unauthorized):
        await tokens.revoke(str(account.client_id), "guess", issued.access_token)

    assert await tokens.verify(issued.access_token)


async def test_a_disabled_organization_is_closed_in_every_process_at_once(
    database_url: str, tokens: Tokens, store: IdentityStore, account: Account
):
    issued = await tokens.issue(str(account.client_id), SECRET)
    before = await tokens.verify(issued.access_token)

    async with _notified(database_url, tokens) as received:
        await store.disable_organization(account.organization_id)
        await asyncio.wait_for(received.get(), 10)

    after = await tokens.verify(issued.access_token)
    assert (before.organization_ids, after.organization_ids) == ({account.organization_id}, frozenset())


async def test_a_disabled_client_is_refused_by_a_process_whose_connection_for_notifications_was_cut(
    database_url: str, store: IdentityStore, attempts: Attempts, account: Account
):
    async with postgres_relay(database_url) as relay:
        listener, gaps = NotificationListener(relay.url), 0
        elsewhere = Tokens(store, SECONDS, attempts, listener.is_current)

        def on_gap() -> None:
            nonlocal gaps
            gaps += 1
            elsewhere.invalidate_all()

        listener.subscribe({"client": elsewhere.on_notify}, on_gap)
        async with listener.listening():
            assert await eventually(listener.is_current)
            issued = await elsewhere.issue(str(account.client_id), SECRET)
            await elsewhere.verify(issued.access_token)

            relay.is_open = False
            relay.cut()
            assert await eventually(lambda: not listener.is_current())
            await store.disable_client(account.client_id)
            relay.is_open = True
            assert await eventually(lambda: gaps == 2)

            with pytest.raises(Unauthorized):
                await elsewhere.verify(issued.access_token)


async def test_callers_at_the_same_time_share_the_statement_that_reads_their_tokens(
    tokens: Tokens, store: IdentityStore, account: Account, database: Database
):
    others = [
        await store.create_client(f"agent {each}", [account.organization_id], hashed(SECRET), ["read"])
        for each in range(5)
    ]
    issued = [(await tokens.issue(str(each), SECRET)).access_token for each in others]

    clients = await asyncio.gather(*(tokens.verify(each) for each in (*issued, *reversed(issued))))

    assert [each.id for each in clients] == [*others, *reversed(others)]


@asynccontextmanager
async def _notified(database_url: str, tokens: Tokens) -> AsyncIterator[asyncio.Queue[str]]:
    """The tokens of another process, and the clients that it hears of."""
    listening, received = asyncio.Event(), asyncio.Queue[str]()
    notifications = NotificationListener(database_url)
    notifications.subscribe({"client": tokens.on_notify}, listening.set)
    notifications.subscribe({"client": received.put_nowait}, None)
    async with notifications.listening():
        await asyncio.wait_for(listening.wait(), 10)
        yield received


async def test_a_secret_can_be_replaced_while_the_old_one_still_works(
    tokens: Tokens, store: IdentityStore, account: Account
):
    newer = new_secret()

    await store.rotate_secret(account.client_id, hashed(newer))

    assert await tokens.issue(str(account.client_id), SECRET)
    assert await tokens.issue(str(account.client_id), newer)


async def refusal(tokens: Tokens, client_id: str, address: str = "198.51.100.7") -> type[Exception]:
    """How a wrong secret is refused."""
    try:
        await tokens.issue(client_id, "guess", address)
    except (Unauthorized, RateLimited) as error:
        return type(error)
    raise AssertionError("a wrong secret was taken")


@pytest.mark.parametrize("spelling", ["{0}", "{{{0}}}", "urn:uuid:{0}", "{0.hex}", "{{{0.hex}}}"])
async def test_wrong_secrets_are_counted_by_id_however_it_is_spelt(tokens: Tokens, account: Account, spelling: str):
    for number in range(MAX_BY_ID):
        assert await refusal(tokens, str(account.client_id), f"address {account.client_id} {number}") is Unauthorized

    assert await refusal(tokens, spelling.format(account.client_id), f"another {account.client_id}") is RateLimited


async def test_wrong_secrets_are_counted_by_address_whatever_the_id(tokens: Tokens):
    address = f"address {uuid4()}"
    for _ in range(MAX_BY_ADDRESS):
        assert await refusal(tokens, str(uuid4()), address) is Unauthorized

    assert await refusal(tokens, str(uuid4()), address) is RateLimited
    assert await refusal(tokens, "not a uuid", address) is RateLimited


async def test_an_unknown_id_is_limited_like_a_known_one(tokens: Tokens):
    client_id = str(uuid4())
    refusals = [await refusal(tokens, client_id, f"{client_id} {number}") for number in range(MAX_BY_ID + 1)]

    assert refusals == [*[Unauthorized] * MAX_BY_ID, RateLimited]


async def test_the_right_secret_works_however_many_wrong_ones_came(tokens: Tokens, account: Account):
    for number in range(MAX_BY_ID + 1):
        await refusal(tokens, str(account.client_id), f"{account.client_id} {number}")

    assert await tokens.issue(str(account.client_id), SECRET)


async def test_front_ends_count_wrong_secrets_together(
    store: IdentityStore, tokens: Tokens, redis_url: str, account: Account
):
    elsewhere = Attempts.at(redis_url)
    other = Tokens(store, SECONDS, elsewhere, lambda: True)
    for number in range(MAX_BY_ID):
        await refusal(other, str(account.client_id), f"{account.client_id} {number}")
    await elsewhere.close()

    with pytest.raises(RateLimited) as limited:
        await tokens.issue(str(account.client_id), "guess", f"{account.client_id}")

    assert 1 <= (limited.value.retry_after or 0) <= WINDOW


async def test_without_redis_a_front_end_counts_alone_and_remembers_no_more_than_it_may(store: IdentityStore):
    alone = Attempts.at("redis://127.0.0.1:1/0")
    tokens = Tokens(store, SECONDS, alone, lambda: True)
    client_id = str(uuid4())

    refusals = [await refusal(tokens, client_id, f"{number}") for number in range(MAX_BY_ID + 1)]
    for number in range(REMEMBERED // 2):  # two are remembered of each: the id and the address
        await alone.wrong_secret("x" * 100_000 + str(number), f"address {number}")

    assert refusals == [*[Unauthorized] * MAX_BY_ID, RateLimited]
    assert len(alone.local_counts) == REMEMBERED
    assert max(len(subject) for subject in alone.local_counts) == 32
