"""Answers, errors and jobs, as formatted for a model."""

from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from typing import Any

import msgspec
import pytest

from gateway.agents.tools import answers
from gateway.contract.jobs import JobStatus
from gateway.errors import FieldError, InvalidParams
from gateway.kinds.find.entries import entry_of
from gateway.upstream.responses import OperationResult
from tests.harness.catalog import shipped_catalog

CATALOG = shipped_catalog()
LIST = entry_of(CATALOG, "support-desk.tickets.list")
NOW = datetime(2026, 1, 2, tzinfo=UTC)


def job(status: JobStatus, **members: Any) -> Any:
    """The members of a job that are formatted."""
    known = {
        "id": "j", "status": status, "is_done": status not in ("queued", "running", "waiting"), "progress": 3,
        "total": 9, "message": None, "kind": "support-desk", "entity": "tickets", "action": "create",
        "task": "operation", "error": None, "created_at": NOW, "started_at": None, "finished_at": None,
        "expires_at": None,
    }  # fmt: skip
    return SimpleNamespace(**{**known, **members})


@pytest.mark.parametrize(
    ("status", "expected"),
    [
        (JobStatus.QUEUED, "working"),
        (JobStatus.RUNNING, "working"),
        (JobStatus.WAITING, "working"),
        (JobStatus.SUCCEEDED, "completed"),
        (JobStatus.FAILED, "completed"),
        (JobStatus.UNKNOWN, "completed"),
        (JobStatus.CANCELED, "cancelled"),
    ],
)
def test_each_status_of_a_job_has_a_task_status(status, expected):
    assert answers.task_document(job(status))["status"] == expected


def test_a_task_has_its_progress_and_its_lifetime():
    task = answers.task_document(job(JobStatus.RUNNING, expires_at=NOW + timedelta(days=1)))

    assert task["statusMessage"] == "3 of 9"
    assert task["ttlMs"] == 86_400_000
    assert task["lastUpdatedAt"] == "2026-01-02T00:00:00Z"


def test_an_unknown_outcome_is_no_error_and_has_the_known_facts():
    known = {"sent_at": "2026-01-02T00:00:00Z", "find_by": "tickets.list"}
    result = answers.unknown_outcome(job(JobStatus.UNKNOWN, error={"known": known, "safe_to_retry": False}))

    document = msgspec.json.decode(result["structuredContent"])
    assert "isError" not in result
    assert (document["status"], document["known"], document["safe_to_retry"]) == ("unknown", known, False)
    assert "may have happened" in document["advice"]


def test_a_refusal_has_all_faults_the_signature_and_an_example():
    faults = [FieldError("/params/page", "page", "minimum", "page is 0"), FieldError("/params/x", "x", "unknown", "x?")]
    result = answers.refused(InvalidParams(faults=faults), LIST)

    document = msgspec.json.decode(result["structuredContent"])
    assert result["isError"]
    assert document["faults"] == ["page is 0", "x?"]
    assert document["example"]["operation"] == "support-desk.tickets.list"
    assert document["signature"].startswith("tickets.list(")


def test_a_preview_has_the_first_records_in_few_bytes():
    rows = [{"id": number, "body": "b" * 5000} for number in range(100)]

    shown = answers.preview(rows)

    assert 1 <= len(shown) < 20
    assert len(msgspec.json.encode(shown)) <= 2300
    assert shown[0]["body"].endswith("…")


def test_a_preview_shortens_records_only_until_three_fit():
    rows = [{"id": number, "body": "b" * 90, **{f"m{each}": "c" * 90 for each in range(10)}} for number in range(100)]

    shown = answers.preview(rows)

    assert len(shown) >= 3
    assert len(msgspec.json.encode(shown)) <= 2000


def linked(records: list[Any], **options: Any) -> dict[str, Any]:
    answer = OperationResult(result=msgspec.Raw(msgspec.json.encode(records)))
    document: dict[str, Any] = msgspec.json.decode(answers.linked("r", "t", answer, {}, **options)["structuredContent"])
    return document


def test_selected_members_are_not_shortened_and_the_hint_continues_after_them():
    document = linked([{"body": "b" * 900}] * 10, selected=True)

    assert document["preview"] == [{"body": "b" * 900}] * 2
    assert document["hint"] == 'rest: read {"operation":"gateway://results/r","offset":2}'


def test_the_hint_after_shortened_records_reads_everything():
    document = linked([{"body": "b" * 9000}] * 10)

    assert document["hint"].startswith('whole: read {"operation":"gateway://results/r","offset":0}')


@pytest.mark.parametrize(
    ("members", "expected"),
    [
        ({"next": {"per_page": 2, "page": 2}}, {"next": {"per_page": 2, "page": 2}}),
        ({"incomplete": "the application lists no more"}, {"incomplete": "the application lists no more"}),
        ({"next": {"page": 2}, "incomplete": "one is null"}, {"next": {"page": 2}, "incomplete": "one is null"}),
        ({}, {}),
    ],
)
def test_a_page_has_the_next_params_and_the_reason_for_being_incomplete(members, expected):
    assert answers.continuation(OperationResult(result=msgspec.Raw(b"[]"), is_page=True, **members)) == expected


def test_pages_have_the_maximum_size_unless_the_params_have_a_size():
    assert answers.largest_pages(LIST, {}) == {"per_page": 100}
    assert answers.largest_pages(LIST, {"per_page": 7}) == {"per_page": 7}
