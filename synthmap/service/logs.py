"""The log: JSON lines on stderr, from this program and from the libraries below it, and never a key in one."""

import logging
import re
import sys
from typing import Any

import structlog
from structlog.typing import EventDict, Processor, WrappedLogger

from synthmap.service.journal import describe

_KEY = re.compile(r"smk_([0-9a-f]{16})_[A-Za-z0-9_-]+")


def start_log(level: str) -> None:
    """Let structlog and `logging` write JSON lines from `level` on (debug, info, warning, error)."""
    shared: list[Processor] = [
        structlog.processors.add_log_level,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
        _without_texts_of_exceptions,
        _without_keys,
    ]
    number = logging.getLevelNamesMapping()[level.upper()]
    structlog.configure(
        processors=[*shared, structlog.processors.JSONRenderer()],
        wrapper_class=structlog.make_filtering_bound_logger(number),
        logger_factory=structlog.WriteLoggerFactory(file=sys.stderr),
        cache_logger_on_first_use=True,
    )
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(
        structlog.stdlib.ProcessorFormatter(
            foreign_pre_chain=shared,
            processors=[
                structlog.stdlib.ProcessorFormatter.remove_processors_meta,
                structlog.processors.JSONRenderer(),
            ],
        )
    )
    root = logging.getLogger()
    root.handlers = [handler]
    root.setLevel(max(number, logging.INFO))  # below that, libraries log what requests hold
    logging.getLogger("alembic").setLevel(logging.WARNING)
    logging.captureWarnings(capture=True)


def _without_texts_of_exceptions(_: WrappedLogger, __: str, event: EventDict) -> EventDict:
    """Put types and places of an exception for its traceback, whose last line is a text from anywhere."""
    told: Any = event.pop("exc_info", None)
    fault = told[1] if isinstance(told, tuple) else told if isinstance(told, BaseException) else None
    if told is True:
        fault = sys.exc_info()[1]
    if fault is not None:
        event["faults"] = list(describe(fault))
    return event


def _without_keys(_: WrappedLogger, __: str, event: EventDict) -> EventDict:
    """Cut the secret out of whatever looks like a key, wherever it came from."""
    return {name: _cut(value) for name, value in event.items()}


def _cut(value: Any) -> Any:
    """Return a value of an event without keys."""
    if isinstance(value, str):
        return _KEY.sub(r"smk_\1_(cut)", value)
    if isinstance(value, list | tuple):
        return [_cut(one) for one in value]
    return value
