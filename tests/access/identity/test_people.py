"""People who sign in by a provider: clients of their own, without a secret."""

import asyncio
from uuid import UUID, uuid4

import pytest

from gateway.access.identity.console_sessions import ConsoleSessions
from gateway.access.identity.people import People
from gateway.access.identity.store import IdentityStore
from gateway.access.identity.tokens import hashed
from gateway.contract.people import GroupView, NewPerson, PersonChange, PersonStatus
from gateway.errors import Conflict, NotFound
from gateway.foundation.db.pool import Database
from tests.harness.databases import waits_for_lock
from tests.harness.waiting import eventually

ISSUER = "https://login.example"


@pytest.fixture
def people(database: Database, store: IdentityStore) -> People:
    return People(database, store)


@pytest.fixture
async def organization_id(store: IdentityStore) -> UUID:
    return (await store.create_organization(f"o-{uuid4().hex}")).id


@pytest.fixture
async def login(people: People, organization_id: UUID) -> str:
    login = f"{uuid4().hex}@example.com"
    await people.add(login, [organization_id], ["read"])
    return login


async def test_a_person_is_a_client_of_that_name_without_a_secret(people: People, store: IdentityStore, login: str):
    [client] = await people.signed_in(ISSUER, "u-1", login)

    stored = await store.client(client.id)
    assert stored is not None
    assert (client.name, client.is_person, stored.secret_hashes) == (login, True, ())


async def test_nobody_gives_a_person_a_secret(people: People, store: IdentityStore, login: str):
    [client] = await people.signed_in(ISSUER, "u-2", login)

    with pytest.raises(NotFound):
        await store.rotate_secret(client.id, hashed("s"))


async def test_a_change_keeps_what_another_one_at_the_same_moment_stored(
    database: Database, people: People, organization_id: UUID
):
    person = await people.create(organization_id, NewPerson(email="old@example.com", name="Old"), lambda client: None)
    async with database.system() as connection, connection.transaction():
        change = PersonChange(email="new@example.com")
        await people.change_within(connection, organization_id, person.id, change, lambda client: None)
        later = asyncio.create_task(
            people.change(organization_id, person.id, PersonChange(name="New"), lambda client: None)
        )
        await eventually(lambda: waits_for_lock(database))
    changed = await later

    assert (changed.email, changed.name) == ("new@example.com", "New")


async def test_a_person_joins_a_group_to_which_a_provider_adds_the_person_at_the_same_moment(
    database: Database, people: People, organization_id: UUID
):
    await people.put_group(organization_id, GroupView("staff", [], []))
    person = await people.create(organization_id, NewPerson(name="New"), lambda client: None)
    async with database.system() as connection, connection.transaction():
        joining = "INSERT INTO group_members (organization_id, group_name, client_id) VALUES ($1, 'staff', $2)"
        await connection.execute(joining, organization_id, person.id)
        change = PersonChange(groups=["staff"])
        changing = asyncio.create_task(people.change(organization_id, person.id, change, lambda client: None))
        await eventually(lambda: waits_for_lock(database))

    assert (await changing).groups == ["staff"]


async def test_a_console_session_that_begins_while_the_person_is_suspended_does_not_come_back_with_the_person(
    database: Database, store: IdentityStore, people: People, organization_id: UUID
):
    sessions = ConsoleSessions(database, store, b"key")
    person = await people.create(organization_id, NewPerson(name="New", scopes=["read"]), lambda client: None)
    caller = await store.caller(person.id, organization_id)
    assert caller is not None
    async with database.system() as connection, connection.transaction():
        await store.disable_client_within(connection, person.id)
        beginning = asyncio.create_task(sessions.begin(caller))

        async def is_over() -> bool:
            return beginning.done() or await waits_for_lock(database)

        await eventually(is_over)
    active = PersonChange(status=PersonStatus.ACTIVE)
    cookie = await beginning
    await people.change(organization_id, person.id, active, lambda client: None)

    assert await sessions.caller(cookie) is None


WORKING = """
    INSERT INTO jobs (id, organization_id, client_id, session_id, status, created_at)
    VALUES ($1, $2, $3, $4, 'running', now() + make_interval(secs => $5))
"""
SESSION = """
    INSERT INTO person_sessions (id, organization_id, client_id, person_id, scopes, limits, expires_at)
    VALUES ($1, $2, $3, $3, '{}', '{}', now() + interval '1 hour')
"""
LOCK = "SELECT FROM jobs WHERE id = $1 FOR NO KEY UPDATE"


@pytest.mark.parametrize("what", ["organization", "person", "session"])
async def test_jobs_are_canceled_in_the_order_in_which_workers_lock_them(
    database: Database, store: IdentityStore, people: People, organization_id: UUID, what: str
):
    """PostgreSQL would end one of two transactions that wait for each other."""
    person = await people.create(organization_id, NewPerson(name="New", scopes=["write"]), lambda client: None)
    session_id, (first, second) = uuid4(), sorted([uuid4(), uuid4()])
    async with database.system() as connection:
        await connection.execute(SESSION, session_id, organization_id, person.id)
        for age, job_id in ((1, second), (0, first)):
            await connection.execute(WORKING, job_id, organization_id, person.id, session_id, age)

    async def end() -> None:
        if what == "organization":
            await store.disable_organization(organization_id)
        elif what == "person":
            await store.disable_client(person.id)
        else:
            async with database.system() as ending:
                await ending.execute("DELETE FROM person_sessions WHERE id = $1", session_id)

    async with database.system() as connection, connection.transaction():
        await connection.execute(LOCK, first)
        ending = asyncio.create_task(end())
        await eventually(lambda: waits_for_lock(database))
        await connection.execute(LOCK, second)
    await ending

    async with database.system() as connection:
        rows = await connection.fetch("SELECT cancel_requested FROM jobs WHERE id = ANY ($1)", [first, second])
        await connection.execute("DELETE FROM jobs WHERE id = ANY ($1)", [first, second])
    assert [row["cancel_requested"] for row in rows] == [True, True]


async def test_a_login_is_added_once(people: People, organization_id: UUID, login: str):
    with pytest.raises(Conflict):
        await people.add(login, [organization_id], ["read"])


async def test_a_person_of_an_organization_that_is_not_there_is_not_added(people: People):
    login = f"{uuid4().hex}@example.com"

    with pytest.raises(NotFound):
        await people.add(login, [uuid4()], ["read"])
    assert login not in {each.login for each in await people.all()}


async def test_of_two_who_sign_in_with_one_login_at_once_one_has_it(people: People, login: str):
    subjects = [f"{login}-{number}" for number in range(5)]

    clients = await asyncio.gather(*(people.signed_in(ISSUER, each, login) for each in subjects))

    assert sum(len(each) for each in clients) == 1


async def test_one_subject_of_another_issuer_is_somebody_else(people: People, login: str):
    assert len(await people.signed_in(ISSUER, login, login)) == 1

    assert await people.signed_in("https://other.example", login, login) == []


async def test_who_is_removed_may_be_added_again_and_is_another_client(
    people: People, organization_id: UUID, login: str
):
    [former] = await people.signed_in(ISSUER, login, login)

    await people.remove(login)
    await people.add(login, [organization_id], ["read"])

    [client] = await people.signed_in(ISSUER, login, login)
    assert client.id != former.id
