"""Rules that an installed package adds by entry point."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from gateway.errors import InternalError
from gateway.kinds.rule_names import known_rules, package_rules
from gateway.upstream.long_running.rules import long_rule
from gateway.upstream.prepared import PreparedCall
from gateway.upstream.rules import rule_named
from tests.kinds.small_kind import small_operation

MODULE = """
from msgspec.structs import replace
from gateway.upstream.long_running.rules import LongRule
from gateway.upstream.rules import Rule

async def followed(run):
    return None

SIGNED = Rule(request=lambda operation, params, request: replace(request, headers={**request.headers, "X-Signed": "1"}))
FOLLOWED = LongRule(run=followed, preview=lambda run: [])
"""
ENTRY_POINTS = "[gateway.rules]\nparcel_signature = parcel_rules:SIGNED\nparcel_run = parcel_rules:FOLLOWED\n"


@pytest.fixture
def installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """An installed package with two rules."""
    (tmp_path / "parcel_rules.py").write_text(MODULE)
    metadata = tmp_path / "parcel_rules-1.0.dist-info"
    metadata.mkdir()
    (metadata / "METADATA").write_text("Metadata-Version: 2.1\nName: parcel-rules\nVersion: 1.0\n")
    (metadata / "entry_points.txt").write_text(ENTRY_POINTS)
    monkeypatch.syspath_prepend(tmp_path)
    for cached in (package_rules, rule_named, long_rule):
        cached.cache_clear()
    yield
    monkeypatch.undo()
    for cached in (package_rules, rule_named, long_rule):
        cached.cache_clear()


@pytest.mark.usefixtures("installed")
def test_a_rule_of_a_package_changes_the_request_of_the_action_that_names_it():
    operation = small_operation({"rule": "parcel_signature"})

    request = PreparedCall.of(operation, {}).request("https://api.example.com/v1")

    assert request.headers["X-Signed"] == "1"
    assert {"parcel_signature", "parcel_run"} <= set(known_rules())


@pytest.mark.usefixtures("installed")
def test_a_long_operation_of_a_package_is_found_by_its_name():
    assert long_rule("parcel_run", is_described=False) is not None
    assert long_rule("parcel_signature", is_described=False) is None


def test_a_rule_whose_package_is_not_installed_is_no_call_without_it():
    with pytest.raises(InternalError, match="no rule parcel_signature"):
        PreparedCall.of(small_operation({"rule": "parcel_signature"}), {})
