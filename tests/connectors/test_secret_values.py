"""Values of referenced secrets: how long they are used, and what callers are told if they cannot be read."""

import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from urllib.parse import urlsplit
from uuid import UUID, uuid4

import pytest

from gateway.connectors.model import REFERENCE
from gateway.connectors.secret_values import SecretValues
from gateway.errors import GatewayError, ReauthorizationRequired, Unavailable
from gateway.foundation.vault.key_services.service import key_service_session
from gateway.foundation.vault.secret_references import SecretPlace
from tests.harness.key_services import VAULT_TOKEN, KeyServices
from tests.harness.waiting import eventually

OURS, THEIRS = uuid4(), uuid4()


@dataclass
class World:
    service: KeyServices
    values: SecretValues
    #: seconds by the clock of the values
    time: float = 1000.0
    environ: dict[str, str] | None = None
    #: organization → the places below which it may name secrets
    allowed: dict[UUID, list[SecretPlace]] = field(default_factory=dict)

    @property
    def host(self) -> str:
        return urlsplit(self.service.url).netloc

    @property
    def url(self) -> str:
        return f"vault://{self.host}/secret/acme/desk#key"

    async def read_field(self, organization_id: UUID, path: str) -> dict[str, str]:
        url = f"vault://{self.host}/secret/{path}#key"
        return await self.values.resolved(organization_id, {f"{REFERENCE}key": url})

    async def read(self, organization_id: UUID = OURS) -> str:
        stored = {"user": "ada", f"{REFERENCE}key": self.url}
        return (await self.values.resolved(organization_id, stored))["key"]


@pytest.fixture
async def world() -> AsyncIterator[World]:
    async with KeyServices().serving() as service, key_service_session() as session:
        environ = {"VAULT_TOKEN": VAULT_TOKEN}
        places = [SecretPlace.read(f"vault://{urlsplit(service.url).netloc}/secret/acme")]
        allowed = {OURS: places}
        world = World(
            service, SecretValues(session, allowed, environ, lambda: world.time), environ=environ, allowed=allowed
        )
        service.secrets["secret/acme/desk"] = {"key": "CANARY-first"}
        yield world
        assert service.faults == []


async def test_a_value_is_used_for_a_minute_and_then_read_again(world: World):
    first = await world.read()
    world.service.secrets["secret/acme/desk"] = {"key": "CANARY-second\n"}
    world.time += 59
    within, requests = await world.read(), list(world.service.requests)
    world.time += 1

    assert (first, within, await world.read()) == ("CANARY-first", "CANARY-first", "CANARY-second")
    assert requests == ["GET /v1/secret/data/acme/desk"]


async def test_a_refused_value_is_read_again_at_once(world: World):
    await world.read()
    world.service.secrets["secret/acme/desk"] = {"key": "CANARY-second"}

    world.values.forget(OURS, [world.url])

    assert await world.read() == "CANARY-second"


async def test_a_value_that_is_being_read_is_used_although_another_is_forgotten(world: World):
    world.service.held = asyncio.Event()
    reading = asyncio.create_task(world.read())
    await eventually(lambda: world.service.requests)

    world.values.forget(OURS, [f"vault://{world.host}/secret/acme/other#key"])
    world.values.forget(THEIRS, [world.url])
    world.service.held.set()

    assert (await reading, await world.read()) == ("CANARY-first", "CANARY-first")
    assert len(world.service.requests) == 1


async def test_reads_of_one_organization_leave_a_slow_service_to_others(world: World):
    world.allowed[THEIRS] = world.allowed[OURS]
    world.service.held = asyncio.Event()
    for each in range(6):
        world.service.secrets[f"secret/acme/{each}"] = {"key": "CANARY-first"}

    ours = [asyncio.create_task(world.read_field(OURS, f"acme/{each}")) for each in range(6)]
    await eventually(lambda: len(world.service.requests) >= 4)
    theirs = asyncio.create_task(world.read_field(THEIRS, "acme/desk"))
    await eventually(lambda: "GET /v1/secret/data/acme/desk" in world.service.requests)
    asked = len(world.service.requests) - 1
    world.service.held.set()
    await asyncio.gather(*ours, theirs)

    assert (asked, len(world.service.requests)) == (4, 7)


async def test_a_value_of_one_organization_is_not_read_for_another(world: World):
    await world.read()

    with pytest.raises(ReauthorizationRequired, match="GATEWAY_SECRET_REFERENCES") as refused:
        await world.read(THEIRS)

    assert str(OURS) not in refused.value.detail


@pytest.mark.parametrize(
    ("cause", "error", "said"),
    [
        ("away", Unavailable, "does not respond, so nothing was sent to the application"),
        ("sealed", Unavailable, "does not respond"),
        ("denied", ReauthorizationRequired, "the secret service refuses vault://"),
        ("missing", ReauthorizationRequired, "the secret service refuses vault://"),
        ("no field", ReauthorizationRequired, "the secret service refuses vault://"),
        ("no text", ReauthorizationRequired, "the secret service refuses vault://"),
        ("no token", ReauthorizationRequired, "the secret service refuses vault://"),
    ],
)
async def test_an_error_says_whether_the_service_is_away_or_refuses(
    world: World, cause: str, error: type[GatewayError], said: str
):
    assert world.environ is not None
    match cause:
        case "away":
            world.service.is_away = True
        case "sealed":
            world.service.refusal = (503, {"errors": ["Vault is sealed"]})
        case "denied":
            world.environ["VAULT_TOKEN"] = "CANARY-other"
        case "missing":
            world.service.secrets.clear()
        case "no field":
            world.service.secrets["secret/acme/desk"] = {"other": "CANARY-first"}
        case "no text":
            world.service.secrets["secret/acme/desk"] = {"key": ["CANARY-first"]}
        case _:
            world.environ.clear()

    with pytest.raises(error, match=said) as refused:
        await world.read()

    assert world.host in refused.value.detail
    assert "CANARY" not in refused.value.detail
