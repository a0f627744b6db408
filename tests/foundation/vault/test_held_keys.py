"""Keys of key services are held for a stated time after they were last unwrapped, each by its own service's answers."""

from collections.abc import Collection, Mapping
from typing import Any
from uuid import UUID

import pytest

from gateway.errors import Unavailable
from gateway.foundation.vault.held_keys import HeldKeys, Holding, holding_after
from gateway.foundation.vault.key_services.opening import answers, new_wrapped_key, unwrapped
from gateway.foundation.vault.key_services.service import (
    KeyServiceAway,
    KeyServiceError,
    KeyServiceRefused,
    KeyWithdrawn,
)
from gateway.foundation.vault.vault import Binding, KeyList, Vault, WrappedKey
from tests.harness.key_services import KeyServices, service_urls

KEYS = [("kms", bytes(range(32))), ("other", bytes(range(32, 64))), ("plain", bytes(32))]
OURS = Binding(UUID(int=1), UUID(int=2))
HOURS = 3600.0
AWAY, REFUSED, WITHDRAWN = KeyServiceAway("it is away"), KeyServiceRefused("it refuses"), KeyWithdrawn("it is disabled")
ENDED = Holding(0, is_held=False)
#: what the services answer for a key that is disabled, deleted or not found
WITHDRAWALS: list[tuple[str, int, Mapping[str, Any]]] = [
    # https://docs.aws.amazon.com/kms/latest/APIReference/API_Decrypt.html#API_Decrypt_Errors
    ("aws", 400, {"__type": "DisabledException", "message": "arn:aws:kms:eu-central-1:1:key/1 is disabled."}),
    ("aws", 400, {"__type": "com.amazonaws.kms#NotFoundException", "message": "Key does not exist"}),
    ("aws", 400, {"__type": "KMSInvalidStateException", "message": "arn:aws:kms:…:key/1 is pending deletion."}),
    # https://learn.microsoft.com/en-us/azure/key-vault/general/rest-error-codes
    ("azure", 403, {"error": {"code": "Forbidden", "message": "no", "innererror": {"code": "KeyDisabled"}}}),
    ("azure", 404, {"error": {"code": "KeyNotFound", "message": "A key with (name/id) it was not found"}}),
    # https://cloud.google.com/kms/docs/key-states
    (
        "google",
        400,
        {"error": {"code": 400, "message": "…/1 is not enabled, current state is: DISABLED.", "status": "…"}},
    ),
    (
        "google",
        400,
        {"error": {"code": 400, "message": "…/1 is not enabled, current state is: DESTROY_SCHEDULED.", "status": "…"}},
    ),
    ("google", 404, {"error": {"code": 404, "message": "CryptoKey not found", "status": "NOT_FOUND"}}),
    # https://developer.hashicorp.com/vault/api-docs/secret/transit#decrypt-data
    ("vault", 400, {"errors": ["encryption key not found"]}),
    ("vault", 400, {"errors": ["ciphertext or signature version is disallowed by policy (too old)"]}),
]


@pytest.mark.parametrize(
    ("holding", "answer", "hours", "after"),
    [
        (Holding(0), b"key", 1.0, Holding(1 * HOURS)),
        (Holding(0), AWAY, 1.0, Holding(0)),
        (Holding(0), AWAY, 1.99, Holding(0)),
        (Holding(0), AWAY, 2.0, ENDED),
        (Holding(0), REFUSED, 1.99, Holding(0)),
        (Holding(0), REFUSED, 2.0, ENDED),
        (Holding(0), WITHDRAWN, 0.25, ENDED),
        (ENDED, AWAY, 1.0, ENDED),
        (ENDED, WITHDRAWN, 1.0, ENDED),
        (ENDED, b"key", 3.0, Holding(3 * HOURS)),
    ],
)
def test_a_key_is_held_by_the_last_answer_that_unwrapped_it(
    holding: Holding, answer: bytes | KeyServiceError, hours: float, after: Holding
):
    assert holding_after(holding, answer, hours * HOURS, 2 * HOURS) == after


@pytest.mark.parametrize(
    ("holding", "hours", "is_due", "left"),
    [
        (Holding(0), 0.24, False, 1.76),
        (Holding(0), 0.25, True, 1.75),
        (Holding(0), 3.0, True, 0.0),
        (ENDED, 0.1, True, 0.0),
    ],
)
def test_a_service_is_asked_after_an_eighth_of_the_time_and_always_for_a_forgotten_key(
    holding: Holding, hours: float, is_due: bool, left: float
):
    assert holding.is_due(hours * HOURS, 2 * HOURS) is is_due
    assert holding.left(hours * HOURS, 2 * HOURS) == pytest.approx(left * HOURS)


class Held:
    """Keys that are held for two hours, with a clock, and services that fail with `errors`."""

    def __init__(self) -> None:
        self.now, self.asked = 0.0, 0
        self.errors: dict[str, KeyServiceError] = {}
        self.vault = Vault(KEYS)
        self.keys = HeldKeys(self.vault, ["kms", "other"], 2 * HOURS, self._ask, lambda: self.now)

    async def _ask(self, key_ids: Collection[str]) -> Mapping[str, bytes | KeyServiceError]:
        self.asked += 1
        return {key_id: self.errors.get(key_id, dict(KEYS)[key_id]) for key_id in key_ids}

    async def looked_at(self, hours: float) -> str:
        """The error of a look at this time, or nothing."""
        self.now = hours * HOURS
        try:
            await self.keys.look()
        except Unavailable as error:
            return error.detail
        return ""


async def test_keys_are_unwrapped_again_after_an_eighth_of_the_time():
    held = Held()

    said = [await held.looked_at(hours) for hours in (0.1, 0.24, 0.25, 0.3, 0.49, 0.5)]

    assert (held.asked, set(said)) == (2, {""})


@pytest.mark.parametrize("error", [AWAY, REFUSED])
async def test_without_its_service_a_key_opens_until_the_time_is_over_and_again_when_the_service_is_back(error):
    held = Held()
    sealed = held.vault.seal({"token": "CANARY"}, OURS)
    by_others = [Vault([key]).seal({"token": "CANARY"}, OURS) for key in KEYS[1:]]
    held.errors = {"kms": error}

    said = await held.looked_at(1.9)
    opened = held.vault.open(sealed, OURS)
    forgotten = await held.looked_at(2.0)

    assert said == f"{error}; it is held for another 360 s"
    assert opened == {"token": "CANARY"}
    assert forgotten == f"{error}; it is held for another 0 s"
    for use in (lambda: held.vault.open(sealed, OURS), lambda: held.vault.seal({}, OURS), held.vault.require_newest):
        with pytest.raises(Unavailable, match="the service that unwraps the encryption keys"):
            use()
    assert [held.vault.open(each, OURS) for each in by_others] == 2 * [{"token": "CANARY"}]

    held.errors = {}
    assert await held.looked_at(2.1) == ""
    assert held.vault.open(sealed, OURS) == {"token": "CANARY"}
    assert held.vault.forgotten == []


async def test_an_older_key_that_stays_away_ends_alone_and_the_newest_goes_on():
    held = Held()
    held.errors = {"other": AWAY}

    said = [await held.looked_at(hours) for hours in (1.9, 2.0, 4.0, 40.0)]

    assert held.vault.forgotten == ["other"]
    held.vault.require_newest()
    assert said[-1] == f"{AWAY}; it is held for another 0 s"


@pytest.mark.parametrize(("name", "status", "answer"), WITHDRAWALS)
async def test_a_service_that_says_that_a_key_is_withdrawn_ends_this_key_only(
    name: str, status: int, answer: Mapping[str, Any]
):
    async with KeyServices().serving() as services:
        kept, withdrawn = await wrapped_by(services, name)
        vault, held = await held_by(services, kept, withdrawn)
        services.refused["withdrawn"] = status, answer

        with pytest.raises(Unavailable, match=f"the encryption key {withdrawn[0]}: .* held for another 0 s"):
            await held.look()

    assert vault.forgotten == [withdrawn[0]]
    assert services.faults == []


@pytest.mark.parametrize("name", ["aws", "azure", "google", "vault"])
async def test_a_service_that_is_away_for_an_hour_and_one_that_denies_permission_end_no_key(name: str):
    async with KeyServices().serving() as services:
        keys = await wrapped_by(services, name)
        vault, held = await held_by(services, *keys, hours=1.0)
        services.is_away = True
        with pytest.raises(Unavailable, match="held for another 3600 s"):
            await held.look()
        services.is_away = False
        services.refused["gateway"] = 403, {"__type": "AccessDeniedException", "errors": ["permission denied"]}
        with pytest.raises(Unavailable, match="held for another 3600 s"):
            await held.look()
        services.refused.clear()
        await held.look()

    assert vault.forgotten == []


async def wrapped_by(services: KeyServices, name: str) -> list[tuple[str, WrappedKey]]:
    """Two keys of a list, which different keys of one service have wrapped; the second has "withdrawn" in its name."""
    url = service_urls(services)[name]
    urls = [url, url.replace("gateway", "gateway-withdrawn")]
    return [await new_wrapped_key(each, services.environ) for each in urls]


async def held_by(services: KeyServices, *keys: tuple[str, WrappedKey], hours: float = 0.25) -> tuple[Vault, HeldKeys]:
    """A vault with these keys, for two hours, of which some have passed."""
    opened: KeyList = await unwrapped(keys, services.environ)
    vault, times = Vault(opened), iter([*(0.0 for _ in keys)])

    async def ask(key_ids: Collection[str]) -> Mapping[str, bytes | KeyServiceError]:
        return await answers({key_id: dict(keys)[key_id] for key_id in key_ids}, services.environ)

    return vault, HeldKeys(vault, dict(keys), 2 * HOURS, ask, lambda: next(times, hours * HOURS))
