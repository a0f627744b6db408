"""Who may renew: one at a time, for as long as there are signs of life."""

import asyncio
from uuid import UUID

from gateway.connectors.consent.leases import LeaseStore
from tests.connectors.consent.conftest import World


async def _connector(world: World) -> UUID:
    return (await world.connector("work-management", {"access_token": "a", "refresh_token": "r"})).id


async def test_of_claims_at_the_same_moment_one_is_granted(world: World) -> None:
    leases, connector_id = LeaseStore(world.database), await _connector(world)

    claims = await asyncio.gather(*(leases.claim(world.organization_id, connector_id, 1) for _ in range(10)))

    assert sum(claim is not None for claim in claims) == 1


async def test_a_sign_of_life_keeps_a_lease(world: World) -> None:
    leases, connector_id = LeaseStore(world.database), await _connector(world)
    lease = await leases.claim(world.organization_id, connector_id, 1)
    assert lease is not None
    await world.sql("UPDATE connector_secrets SET refreshing_until = now() WHERE connector_id = $1", connector_id)

    await leases.extend(lease)

    assert await leases.claim(world.organization_id, connector_id, 1) is None


async def test_a_lease_that_was_taken_over_has_no_say_any_more(world: World) -> None:
    leases, connector_id = LeaseStore(world.database), await _connector(world)
    late = await leases.claim(world.organization_id, connector_id, 1)
    assert late is not None
    await world.sql("UPDATE connector_secrets SET refreshing_until = now() WHERE connector_id = $1", connector_id)
    taken = await leases.claim(world.organization_id, connector_id, 1)

    await leases.release(late, is_lost=False)

    assert taken is not None
    assert taken.lost_since is not None
    assert await leases.claim(world.organization_id, connector_id, 1) is None


async def test_credentials_that_were_replaced_are_not_claimed(world: World) -> None:
    leases, connector_id = LeaseStore(world.database), await _connector(world)
    await world.connectors.update(world.organization_id, connector_id, credentials={"access_token": "b"})

    assert await leases.claim(world.organization_id, connector_id, 1) is None
    assert await leases.claim(world.organization_id, connector_id, 2) is not None


async def test_another_organizations_credentials_are_not_claimed(world: World) -> None:
    leases, connector_id = LeaseStore(world.database), await _connector(world)
    other = await world.identity.create_organization(f"other of {connector_id}")

    assert await leases.claim(other.id, connector_id, 1) is None
