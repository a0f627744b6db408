"""Logs: one event per line with its fields, as JSON when piped and as text on a terminal, without secrets.

The request id and the job id of an event come from the context of its task (`gateway.foundation.telemetry.tracing`).
"""

import logging
import re
import sys
from datetime import UTC, datetime
from typing import Any

import msgspec

from gateway.foundation.telemetry.tracing import log_fields

#: attributes of every `LogRecord`; all others are fields of the event
_OWN = frozenset(vars(logging.makeLogRecord({}))) | {"message", "asctime", "taskName"}

# Mask secrets that libraries' errors and applications' messages may quote; the gateway's own events have none. No
# pattern begins with a repetition, so that each takes time linear in the text.
_SECRETS = (
    (re.compile(r"\b(bearer|basic)\s+[\w.~+/=-]{6,}", re.IGNORECASE), r"\1 ***"),
    (re.compile(r"://[^/\s@]*@"), "://***@"),
    (
        re.compile(
            r"""(token|secret|password|passwd|api[_-]?key|authorization)(["']?\s*[=:]\s*["']?)[^\s"'&,;}]+""",
            re.IGNORECASE,
        ),
        r"\1\2***",
    ),
)


#: maximum characters of an event's text or of its traceback
_MAX_TEXT = 32_000
#: characters that move a terminal's cursor, end a line or reorder it: C0 and C1 controls (U+0085 among them), line and
#: paragraph separators, and the bidirectional controls
_CONTROL = re.compile("[\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]")


def configure_logs(log_format: str = "auto", level: str = "info") -> None:
    """Send all logs to standard error."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(TextFormatter() if log_format_of(log_format) == "text" else JsonFormatter())
    logging.basicConfig(level=level.upper(), handlers=[handler], force=True)
    # arq logs each wake-up; the events of the job have more details
    logging.getLogger("arq").setLevel(logging.WARNING)


def log_format_of(log_format: str) -> str:
    """`text` or `json`; for `auto` text if standard error is a terminal."""
    if log_format != "auto":
        return log_format
    return "text" if sys.stderr.isatty() else "json"


def without_secrets(text: str) -> str:
    """The text with likely credentials masked; one above _MAX_TEXT is cut to its beginning and its last lines."""
    if len(text) > _MAX_TEXT:
        # Continue at the beginning of a line: a credential that is cut from its name would not be recognized.
        text = f"{text[: _MAX_TEXT // 2]} …\n{text[-_MAX_TEXT // 2 :].partition(chr(10))[2]}"
    for pattern, mask in _SECRETS:
        text = pattern.sub(mask, text)
    return text


def _on_one_line(value: object) -> str:
    """The value as text with its control characters escaped, so that no field can forge a line of the log."""
    return _CONTROL.sub(lambda found: found[0].encode("unicode_escape").decode(), str(value))


def _fields(record: logging.LogRecord) -> dict[str, Any]:
    fields = {name: value for name, value in vars(record).items() if name not in _OWN}
    return {**log_fields(), **fields}


def _event(record: logging.LogRecord) -> str:
    """The message, with the secrets in quoted text masked."""
    return without_secrets(record.getMessage()) if record.args else record.getMessage()


def _surrogates_escaped(value: Any) -> Any:
    """A plain value with each lone surrogate, which UTF-8 cannot encode, as text such as `\\udcff`."""
    if isinstance(value, str):
        return value.encode(errors="backslashreplace").decode()
    if isinstance(value, dict):
        return {_surrogates_escaped(name): _surrogates_escaped(each) for name, each in value.items()}
    return [_surrogates_escaped(each) for each in value] if isinstance(value, list | tuple) else value


class JsonFormatter(logging.Formatter):
    """One JSON object per line."""

    def format(self, record: logging.LogRecord) -> str:
        event: dict[str, Any] = {
            "at": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "logger": record.name,
            "event": _event(record),
            **_fields(record),
        }
        if record.exc_info:
            event["exception"] = without_secrets(self.formatException(record.exc_info))
        try:
            return msgspec.json.encode(event, enc_hook=str).decode()
        except UnicodeEncodeError:
            return msgspec.json.encode(_surrogates_escaped(msgspec.to_builtins(event, enc_hook=str))).decode()


class TextFormatter(logging.Formatter):
    """One line of text per event; a traceback follows it in indented lines."""

    def format(self, record: logging.LogRecord) -> str:
        moment = datetime.fromtimestamp(record.created).strftime("%H:%M:%S")
        fields = "".join(
            f" {_on_one_line(name)}={_on_one_line(value)}"
            for name, value in _fields(record).items()
            if value is not None
        )
        line = f"{moment} {record.levelname.lower():7} {_on_one_line(_event(record))}{fields}"
        if not record.exc_info:
            return line
        traceback = without_secrets(self.formatException(record.exc_info))
        return "\n    ".join([line, *map(_on_one_line, traceback.split("\n"))])
