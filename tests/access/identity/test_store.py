"""Organizations, clients and workspaces as PostgreSQL keeps them."""

from uuid import UUID, uuid4

import pytest

from gateway.access.identity.console_sessions import ConsoleSessions
from gateway.access.identity.model import Caller, Scope
from gateway.access.identity.store import IdentityStore
from gateway.access.identity.tokens import hashed
from gateway.errors import Conflict, InsufficientScope, NotFound, OrganizationForbidden, OrganizationRequired
from gateway.foundation.db.pool import Database
from tests.access.identity.conftest import Account


def unique(what: str) -> str:
    return f"{what}-{uuid4().hex}"


async def test_two_organizations_cannot_have_one_name(store: IdentityStore):
    name = unique("o")
    await store.create_organization(name)

    with pytest.raises(Conflict, match=name):
        await store.create_organization(name)


async def test_a_client_of_an_organization_that_is_not_there_is_not_created(store: IdentityStore):
    name = unique("client")

    with pytest.raises(NotFound):
        await store.create_client(name, [uuid4()], hashed("s"), ["read"])

    assert name not in {client.name for client in await store.all_clients()}


async def test_a_client_comes_back_as_it_was_created(store: IdentityStore, account: Account):
    urls = ("https://app.example/back",)
    client_id = await store.create_client("portal", [account.organization_id], hashed("s"), ["admin"], urls)

    stored = await store.client(client_id)

    assert stored is not None
    assert stored.secret_hashes == (hashed("s"),)
    assert (stored.client.name, stored.client.scopes) == ("portal", {"admin"})
    assert (stored.client.redirect_urls, stored.client.organization_ids) == (urls, {account.organization_id})


async def test_the_clients_of_an_organization_are_those_that_may_act_for_it(store: IdentityStore, account: Account):
    other = (await store.create_organization(unique("o"))).id
    own = await store.create_client("own", [account.organization_id], hashed("s"), ["read"])
    both = await store.create_client("both", [account.organization_id, other], hashed("s"), ["read"])
    foreign = await store.create_client("foreign", [other], hashed("s"), ["read"])

    found = {client.id: client for client in await store.clients_of(account.organization_id)}

    assert {own, both} <= set(found)
    assert foreign not in found
    assert found[both].organization_ids == {account.organization_id, other}


async def test_what_is_not_there_cannot_be_disabled(store: IdentityStore):
    with pytest.raises(NotFound):
        await store.disable_client(uuid4())
    with pytest.raises(NotFound):
        await store.disable_organization(uuid4())
    with pytest.raises(NotFound):
        await store.rotate_secret(uuid4(), None)


async def test_a_workspace_comes_into_being_once(store: IdentityStore, account: Account):
    first = await store.workspace_named(account.organization_id, "support")
    second = await store.workspace_named(account.organization_id, "support")

    assert first == second
    assert await _names(store, account.organization_id) == {first: "support"}


async def test_a_workspace_that_exists_is_not_written_again(store: IdentityStore, account: Account, database: Database):
    async def version() -> str:
        async with database.tenant(account.organization_id) as connection:
            return str(await connection.fetchval("SELECT xmin::text || ctid::text FROM workspaces"))

    await store.workspace_named(account.organization_id, "support")
    written = await version()
    await store.workspace_named(account.organization_id, "support")

    assert await version() == written


async def test_two_organizations_can_use_one_workspace_name_apart(store: IdentityStore, account: Account):
    stranger = await store.create_organization(unique("o"))

    ours = await store.workspace_named(account.organization_id, "shared")
    theirs = await store.workspace_named(stranger.id, "shared")

    assert ours != theirs
    assert await _names(store, account.organization_id) == {ours: "shared"}


async def test_a_stranger_cannot_delete_a_workspace(store: IdentityStore, account: Account):
    stranger = await store.create_organization(unique("o"))
    ours = await store.workspace_named(account.organization_id, "ours")

    await store.delete_workspace(stranger.id, ours)

    assert await _names(store, account.organization_id) == {ours: "ours"}


async def test_workspaces_come_in_pages_by_name(store: IdentityStore, account: Account):
    for name in ("Beta", "alpha", "beta 2", "ALPHA"):
        await store.workspace_named(account.organization_id, name)

    first = await store.workspaces(account.organization_id, "a", None, 2)
    rest = await store.workspaces(account.organization_id, "a", (first[-1].name, first[-1].id), 10)

    assert [each.name for each in first + rest] == ["ALPHA", "Beta", "alpha", "beta 2"]


@pytest.mark.parametrize("sought", ["%", "_", "\\", "x' OR true --"])
async def test_a_name_to_look_for_is_no_pattern(store: IdentityStore, account: Account, sought: str):
    await store.workspace_named(account.organization_id, "plain")

    assert await store.workspaces(account.organization_id, sought, None, 10) == []


async def test_a_client_of_one_organization_acts_for_it(store: IdentityStore, account: Account):
    stored = await store.client(account.client_id)

    assert stored is not None
    assert stored.client.caller(None).organization_id == account.organization_id
    assert stored.client.caller(str(account.organization_id).upper()).organization_id == account.organization_id


async def test_a_client_of_two_organizations_must_name_one_of_them(store: IdentityStore, account: Account):
    second = await store.create_organization(unique("o"))
    both = [account.organization_id, second.id]
    stored = await store.client(await store.create_client("both", both, hashed("s"), ["read"]))

    assert stored is not None
    assert stored.client.caller(str(second.id)).organization_id == second.id
    with pytest.raises(OrganizationRequired):
        stored.client.caller(None)
    with pytest.raises(OrganizationForbidden):
        stored.client.caller(str(uuid4()))


async def test_a_client_whose_organizations_are_disabled_is_asked_for_none(store: IdentityStore, account: Account):
    await store.disable_organization(account.organization_id)
    stored = await store.client(account.client_id)

    assert stored is not None
    with pytest.raises(OrganizationForbidden):
        stored.client.caller(None)


async def test_a_caller_without_the_scope_gets_the_name_of_the_one_it_needs(store: IdentityStore, account: Account):
    stored = await store.client(account.client_id)

    assert stored is not None
    with pytest.raises(InsufficientScope, match="admin"):
        stored.client.caller(None).require(Scope.ADMIN)


async def _names(store: IdentityStore, organization_id: UUID) -> dict[UUID, str]:
    """The organization's workspaces by id."""
    return {each.id: each.name for each in await store.workspaces(organization_id, None, None, 10)}


async def test_finishing_a_rotation_ends_the_clients_console_sessions(
    database: Database, store: IdentityStore, account: Account
):
    sessions = ConsoleSessions(database, store, b"key")
    stored = await store.client(account.client_id)
    assert stored is not None
    cookie = await sessions.begin(Caller(stored.client, account.organization_id))

    await store.rotate_secret(account.client_id, hashed("next"))
    during = await sessions.caller(cookie)
    await store.rotate_secret(account.client_id, None)

    assert during is not None
    assert await sessions.caller(cookie) is None
