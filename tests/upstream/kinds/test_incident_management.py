"""Incident management, beside what is tested of every kind."""

from gateway.contract.kinds import Effect
from gateway.kinds.loading import load_kind, shipped_specs

KIND = load_kind(shipped_specs() / "incident-management")


def test_everything_is_a_read():
    assert {operation.action.effect for operation in KIND.operations.values()} == {Effect.READ}


def test_there_is_no_oauth():
    assert (KIND.spec.oauth, KIND.spec.oauth_method) == (None, None)
