"""The format of log lines on stderr: JSON objects for machines, or text for people.

Code logs a constant message and passes the details as `extra` fields. Every line can be written:
a value that JSON cannot represent is written as Python prints it.
"""

import logging
import sys
from collections.abc import Mapping
from datetime import UTC, datetime
from enum import StrEnum
from typing import Any, TextIO

import msgspec


class Level(StrEnum):
    """The least severe level that is logged."""

    DEBUG = "debug"
    INFO = "info"
    WARNING = "warning"
    ERROR = "error"


class Format(StrEnum):
    """JSON for machines, or text for people."""

    JSON = "json"
    TEXT = "text"


# The attributes that every record has; the others are fields from `extra`.
_STANDARD = frozenset(logging.makeLogRecord({}).__dict__) | {"message", "asctime", "taskName"}
_OURS = frozenset({"time", "level", "message", "logger", "exception"})


def set_up(level: Level, format: Format, stream: TextIO | None = None) -> None:
    """Log everything in this process to `stream`, and nothing twice."""
    handler = logging.StreamHandler(stream or sys.stderr)
    handler.setFormatter(JsonLines() if format is Format.JSON else TextLines())
    root = logging.getLogger()
    root.handlers[:] = [handler]
    # Of libraries such as aiohttp and asyncio, only warnings and errors are of interest.
    root.setLevel(logging.ERROR if level is Level.ERROR else logging.WARNING)
    logging.getLogger("mpi_operator").setLevel(level.upper())
    logging.captureWarnings(True)


class JsonLines(logging.Formatter):
    """One JSON object per line. A stack trace is one field."""

    def format(self, record: logging.LogRecord) -> str:
        line: dict[str, object] = {
            "time": _time(record).isoformat(timespec="milliseconds").replace("+00:00", "Z"),
            "level": record.levelname.lower(),
            "message": record.getMessage(),
            "logger": record.name,
        }
        line |= {f"{name}_" if name in _OURS else name: v for name, v in _fields(record).items()}
        if trace := _trace(self, record):
            line["exception"] = trace
        return _json(line)


class TextLines(logging.Formatter):
    """Time, level, message and fields; then lists, one item per line, and stack traces."""

    def format(self, record: logging.LogRecord) -> str:
        fields = _fields(record)
        lists = {name: value for name, value in fields.items() if _is_list(value)}
        first = [
            _time(record).astimezone().strftime("%H:%M:%S"),
            record.levelname.ljust(7),
            _one_line(_safe(record.getMessage())),
            *(f"{name}={_shown(value)}" for name, value in fields.items() if name not in lists),
        ]
        below = [f"  {name}: {_one_line(_text(v))}" for name, value in lists.items() for v in value]
        return "\n".join(filter(None, [" ".join(first), *below, _trace(self, record)]))


def _time(record: logging.LogRecord) -> datetime:
    return datetime.fromtimestamp(record.created, UTC)


def _fields(record: logging.LogRecord) -> Mapping[str, Any]:
    return {name: value for name, value in vars(record).items() if name not in _STANDARD}


def _trace(formatter: logging.Formatter, record: logging.LogRecord) -> str:
    parts = [
        formatter.formatException(record.exc_info) if record.exc_info else record.exc_text,
        formatter.formatStack(record.stack_info) if record.stack_info else "",
    ]
    return "\n".join(part for part in parts if part)


def _json(line: Mapping[str, object]) -> str:
    try:
        return _encode(line)
    except Exception:  # JSON cannot represent one of the fields; the others stay as they are
        return _encode({_safe(name): _encodable(value) for name, value in line.items()})


def _encodable(value: object) -> object:
    try:
        _encode(value)
    except Exception:
        return _safe(_printed(value))
    return value


def _encode(value: object) -> str:
    return msgspec.json.encode(value, enc_hook=str).decode()


def _printed(value: object) -> str:
    try:
        return value if isinstance(value, str) else repr(value)
    except Exception:
        return f"<a {type(value).__name__} that cannot be printed>"


def _safe(text: str) -> str:
    """Without what UTF-8 cannot encode, such as a lone surrogate from a file name."""
    return text.encode(errors="backslashreplace").decode()


def _is_list(value: object) -> bool:
    return isinstance(value, list | tuple) and len(value) > 1


def _shown(value: object) -> str:
    """The value, quoted where it would otherwise be unclear where it ends."""
    text = _text(value)
    is_clear = text and text.isprintable() and not any(c in ' "=' for c in text)
    return text if is_clear or not isinstance(value, str) else repr(text)


def _text(value: object) -> str:
    return _safe(_printed(value))


def _one_line(text: str) -> str:
    """The text with line breaks escaped, so that no value can look like a line of the log."""
    return "".join(c if c.isprintable() else repr(c)[1:-1] for c in text)
