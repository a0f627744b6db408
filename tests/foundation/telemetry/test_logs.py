"""Logs: one event per line, with the ids of its request and job, and without secrets."""

import asyncio
import json
import logging
import sys
from pathlib import Path

import pytest

from gateway.foundation.telemetry.logs import JsonFormatter, TextFormatter, without_secrets
from gateway.foundation.telemetry.tracing import add_log_fields, begin_request

CANARY = "c4n4ry-0123456789abcdef"


def record(message: str, *arguments: object, error: BaseException | None = None, **fields: object) -> logging.LogRecord:
    exc_info = (type(error), error, error.__traceback__) if error else None
    made = logging.LogRecord("gateway.test", logging.WARNING, "test.py", 1, message, arguments, exc_info)
    vars(made).update(fields)
    return made


def raised(error: Exception) -> Exception:
    try:
        raise error
    except Exception as caught:
        return caught


def test_an_event_is_one_line_of_json_with_its_fields():
    line = JsonFormatter().format(record("two\nlines", took_ms=1.5, connector_id=None))

    event = json.loads(line)
    assert "\n" not in line
    assert {name: event[name] for name in ("level", "logger", "event", "took_ms")} == {
        "level": "warning",
        "logger": "gateway.test",
        "event": "two\nlines",
        "took_ms": 1.5,
    }
    assert event["at"].endswith("+00:00")


@pytest.mark.parametrize(
    ("fields", "logged"),
    [
        ({"file": "\udcff"}, {"file": "\\udcff"}),
        ({"names": ("a", "\ud800é", 1.5, float("nan"))}, {"names": ["a", "\\ud800é", 1.5, None]}),
        ({"by_name": {"\ud800": Path("\udcff")}}, {"by_name": {"\\ud800": "\\udcff"}}),
    ],
)
def test_an_event_with_a_lone_surrogate_is_logged_with_the_surrogate_escaped(
    fields: dict[str, object], logged: dict[str, object]
):
    event = json.loads(JsonFormatter().format(record("file %s", "\udcff", **fields)))

    assert event["event"] == "file \\udcff"
    assert {name: event[name] for name in fields} == logged


def test_an_event_on_a_terminal_is_one_line_of_text():
    begin_request("r-1", "GET", {})

    line = TextFormatter().format(record("request", status=200, route=None))

    assert line.endswith("warning request request_id=r-1 status=200")


@pytest.mark.parametrize(
    "separator", ["\n", "\r\n", "\x00", "\x1b[2J", "\x7f", "\x85", "\x9b", "\u2028", "\u2029", "\u202e"]
)
def test_no_field_forges_a_line_of_a_text_log(separator: str):
    forged = f"x{separator}12:00:00 info    request status=200"
    begin_request(forged, "GET", {})

    line = TextFormatter().format(record("called: %s", forged, operation=forged, **{forged: 1}))

    assert len(line.splitlines()) == 1
    assert line.isprintable()


def test_only_a_traceback_continues_an_event_and_its_lines_are_indented():
    begin_request("r-1", "GET", {})

    text = TextFormatter().format(record("a bug", error=raised(ValueError("x\n12:00:00 info    forged\x85and more"))))

    first, *rest = text.splitlines()
    assert first.endswith("warning a bug request_id=r-1")
    assert all(line.startswith("    ") for line in rest)
    assert "forged\\x85and more" in rest[-1]


async def test_an_event_has_the_ids_of_its_request_and_job_also_in_tasks_that_they_start():
    begin_request("r-1", "GET", {})

    async def elsewhere() -> dict[str, object]:
        add_log_fields(job_id="j-1")
        return json.loads(JsonFormatter().format(record("within")))

    inner = await asyncio.create_task(elsewhere())
    outer = json.loads(JsonFormatter().format(record("around")))

    assert (inner["request_id"], inner["job_id"]) == ("r-1", "j-1")
    assert outer["request_id"] == "r-1"
    assert "job_id" not in outer


def test_a_field_of_the_event_replaces_that_of_the_context():
    begin_request("context", "GET", {})

    event = json.loads(JsonFormatter().format(record("given", request_id="own")))

    assert event["request_id"] == "own"


@pytest.mark.parametrize(
    "text",
    [
        f"Authorization: Bearer {CANARY}",
        f"authorization: basic {CANARY}",
        f"postgresql://gateway:{CANARY}@db.example:5432/gateway is away",
        f"redis://:{CANARY}@cache/0",
        f"https://{CANARY}@example.com/hook",
        f"GET /x?access_token={CANARY}&page=2",
        f'{{"refresh_token": "{CANARY}", "scope": "read"}}',
        f"client_secret='{CANARY}'",
        f"GATEWAY_S3_SECRET={CANARY}",
        f"api_key={CANARY}; x-api-key: {CANARY}",
        f"password: {CANARY}",
    ],
)
@pytest.mark.parametrize("formatter", [JsonFormatter(), TextFormatter()], ids=["json", "text"])
def test_a_secret_that_a_message_or_an_error_quotes_is_masked(formatter: logging.Formatter, text: str):
    quoted = formatter.format(record("a library said: %s", text))
    told = formatter.format(record("a bug", error=raised(ValueError(text))))

    assert CANARY not in quoted + told
    assert "***" in quoted
    assert "***" in told


@pytest.mark.parametrize(
    "text", ["tickets.list: page is 'x'; it must be an integer", "the token endpoint answered 503", "3 tokens left"]
)
def test_text_without_secrets_is_unchanged(text: str):
    assert without_secrets(text) == text


def test_the_format_auto_is_json_when_standard_error_is_not_a_terminal(capfd: pytest.CaptureFixture[str]):
    from gateway.foundation.telemetry.logs import configure_logs

    before = logging.root.handlers[:], logging.root.level
    try:
        configure_logs("auto", "info")
        logging.getLogger("gateway.test").info("hello", extra={"number": 1})
        sys.stderr.flush()
    finally:
        logging.root.handlers[:], logging.root.level = before

    assert json.loads(capfd.readouterr().err)["number"] == 1
