import re
from datetime import UTC, datetime

import pytest

from gateway import errors
from gateway.cli.failures import exit_code, one_line
from gateway.cli.output import columns_of, fitted, write_table
from gateway.cli.words import ago, printable, shown, size_of
from gateway.errors import FieldError, UpstreamFault


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, ""),
        (True, "yes"),
        (5, "5"),
        ("2026-11-21T10:24:44.264089Z", "2026-11-21 10:24:44"),
        ({"a": [1]}, '{"a":[1]}'),
        ("x" * 100, "x" * 59 + "…"),
    ],
)
def test_values_fit_a_cell(value, text):
    assert shown(value) == text


def test_control_characters_of_an_application_are_removed():
    assert printable("a\x1b[31mred\nb\x9bc\u202ed") == "a [31mred b c d"


@pytest.mark.parametrize(
    ("count", "text"), [(999, "999 B"), (1500, "1.5 kB"), (3 * 10**9, "3.0 GB"), (10**15, "1000.0 TB")]
)
def test_sizes_are_printed_with_a_unit(count, text):
    assert size_of(count) == text


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (errors.UnknownEntity(), 1),
        (errors.UpstreamTimeout(), 1),
        (errors.Unauthorized(), 3),
        (errors.InsufficientScope(), 3),
        (errors.ReauthorizationRequired(), 3),
        (errors.UpstreamNotFound(), 4),
        (errors.ResultExpired(), 4),
        (errors.UpstreamRateLimited(), 5),
        (errors.Unavailable(), 5),
        (errors.UpstreamRejected(extra={"job_id": "j"}), 6),
    ],
)
def test_each_group_of_errors_has_its_exit_code(error, code):
    assert exit_code(error) == code


def test_an_error_is_one_line_with_all_that_helps():
    error = errors.UpstreamError(
        "the application failed\nbadly",
        upstream=UpstreamFault(status=500, message="boom"),
        retry_after=5,
        extra={"http_status": 502, "request_id": "r-1"},
    )

    assert (
        one_line(error) == "the application failed badly (the application says: boom) (try again in 5 s) (request r-1)"
    )


@pytest.mark.parametrize(
    ("path", "listing"),
    [
        ("jobs", "gateway jobs list"),
        ("integrations/connectors", "gateway connectors list"),
        ("workspaces", "gateway workspaces"),
    ],
)
def test_an_unknown_id_names_the_command_that_lists_in_place_of_the_request(path, listing):
    error = errors.NotFound(f"ids are UUIDs; GET /api/v1/{path} lists things with their ids")

    assert one_line(error) == f"ids are UUIDs; `{listing}` lists things with their ids"


def test_every_fault_is_part_of_the_line():
    faults = [FieldError("/a", "a", "x", "a is missing"), FieldError("/b", "b", "x", "b is 5; at most 3")]

    assert one_line(errors.InvalidParams("2 faults", faults=faults)) == "a is missing; b is 5; at most 3"


def test_empty_nested_and_long_values_and_links_get_no_column():
    records = [{"url": "https://x", "via": {}, "noise": "n" * 40, "id": 7, "empty": None, "subject": "Fire"}]

    assert columns_of(records, width=30) == ["id", "subject"]


def test_zero_and_false_get_a_column():
    assert columns_of([{"id": 1, "count": 0, "open": False, "note": ""}], width=80) == ["id", "count", "open"]


def test_long_values_are_cut_before_columns_are_left_out():
    wanted = {"id": 36, "status": 6, "subject": 300, "email": 27, "created_at": 19}

    assert fitted(wanted, 400) == {**wanted, "subject": 300}
    assert sum(fitted(wanted, 80).values()) + 2 * (len(fitted(wanted, 80)) - 1) <= 80
    assert list(fitted(wanted, 50)) == ["id", "status"]


def test_a_cut_value_beside_short_values_leaves_them_whole(capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")

    record = {"id": "6f1d7b8c-0000-4000-8000-000000000000", "name": "n" * 90, "status": "active"}
    write_table([record], tuple(record))

    shown = capsys.readouterr().out
    assert re.search(r" status +\n", shown)
    assert re.search(r" n{20,}… +active +\n", shown)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ("2026-01-31T11:59:30Z", "30 s ago"),
        ("2026-01-31T11:57:00.500Z", "3 min ago"),
        ("2026-01-31T09:00:00Z", "3 h ago"),
        ("2026-01-29T12:00:00+00:00", "2 d ago"),
        ("2026-01-31T14:00:00Z", "in 2 h"),
        ("2026-01-31", None),
        (12, None),
        (None, None),
    ],
)
def test_a_time_is_shown_as_its_distance_from_now(value: object, text: str | None):
    assert ago(value, datetime(2026, 1, 31, 12, tzinfo=UTC)) == text
