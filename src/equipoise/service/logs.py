"""Format the logs of the service: lines of text for people or of JSON for programs, with the request id."""

from __future__ import annotations

import json
import logging
import sys
from datetime import UTC, datetime

from equipoise.errors import visible

FORMATS = ("text", "json")


class TextLines(logging.Formatter):
    """Formats a record as time, level, message and name=value pairs."""

    def format(self, record: logging.LogRecord) -> str:
        """Format a log record."""
        data = " ".join(f"{name}={_word(value)}" for name, value in _data(record).items())
        line = f"{_instant(record)} {record.levelname.lower():7} {visible(record.getMessage())}"
        text = f"{line} {data}" if data else line
        return f"{text}\n{self.formatException(record.exc_info)}" if record.exc_info else text


class JsonLines(logging.Formatter):
    """Formats a record as one JSON object per line."""

    def format(self, record: logging.LogRecord) -> str:
        """Format a log record."""
        data = {"at": _instant(record), "level": record.levelname.lower(), "event": record.getMessage()}
        if record.exc_info:
            data["traceback"] = self.formatException(record.exc_info)
        return json.dumps(data | _data(record), default=str)


def set_up(form: str, *, stream: object = None) -> None:
    """Send the logs of the service and of uvicorn to stderr."""
    handler = logging.StreamHandler(stream or sys.stderr)  # type: ignore[arg-type]
    handler.setFormatter(JsonLines() if form == "json" else TextLines())
    for name, level in (("equipoise.service", logging.INFO), ("uvicorn", logging.WARNING)):
        logger = logging.getLogger(name)
        logger.handlers, logger.propagate = [handler], False
        logger.setLevel(level)


def _data(record: logging.LogRecord) -> dict[str, object]:
    return dict(getattr(record, "data", {}))


def _instant(record: logging.LogRecord) -> str:
    return datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds")


def _word(value: object) -> str:
    text = visible(str(value))
    return json.dumps(text) if " " in text or not text else text
