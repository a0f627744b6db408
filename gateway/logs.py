"""Logs: one event a line with its fields, JSON when piped and readable on a terminal; never a secret."""

import logging
import sys
from datetime import UTC, datetime
from typing import Any

import msgspec

#: what every record carries; everything else was given as a field
_OWN = frozenset(vars(logging.makeLogRecord({}))) | {"message", "asctime", "taskName"}


def configure_logs(log_format: str = "auto", level: str = "info") -> None:
    """Send all logs to standard error."""
    is_text = log_format == "text" or (log_format == "auto" and sys.stderr.isatty())
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(TextFormatter() if is_text else JsonFormatter())
    logging.basicConfig(level=level.upper(), handlers=[handler], force=True)
    # arq tells each ring; the job's own events say more
    logging.getLogger("arq").setLevel(logging.WARNING)


def _fields(record: logging.LogRecord) -> dict[str, Any]:
    return {name: value for name, value in vars(record).items() if name not in _OWN}


class JsonFormatter(logging.Formatter):
    """One JSON object a line."""

    def format(self, record: logging.LogRecord) -> str:
        event: dict[str, Any] = {
            "at": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "logger": record.name,
            "event": record.getMessage(),
            **_fields(record),
        }
        if record.exc_info:
            event["exception"] = self.formatException(record.exc_info)
        return msgspec.json.encode(event, enc_hook=str).decode()


class TextFormatter(logging.Formatter):
    """A line for people."""

    def format(self, record: logging.LogRecord) -> str:
        moment = datetime.fromtimestamp(record.created).strftime("%H:%M:%S")
        fields = "".join(f" {name}={value}" for name, value in _fields(record).items() if value is not None)
        line = f"{moment} {record.levelname.lower():7} {record.getMessage()}{fields}"
        return f"{line}\n{self.formatException(record.exc_info)}" if record.exc_info else line
