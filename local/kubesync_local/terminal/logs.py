"""The log of a command: on standard error, readable, and by default only warnings and errors.

KUBESYNC_LOG_LEVEL sets the level (default: WARNING). On Lambda it is POWERTOOLS_LOG_LEVEL.
"""

import logging
import os
from typing import Final

from kubesync.domain.errors import UsageError
from kubesync_local.terminal.escaping import escaped, visible
from kubesync_local.terminal.remarks import write_patiently

LEVELS: Final = ("DEBUG", "INFO", "WARNING", "ERROR", "CRITICAL")
_OWN_FIELDS: Final = frozenset(vars(logging.LogRecord("", 0, "", 0, "", (), None))) | {"message", "asctime", "taskName"}


class _Readable(logging.Formatter):
    """``warning: message (key=value, ...)`` on one line; a traceback only with KUBESYNC_DEBUG=1."""

    def format(self, record: logging.LogRecord) -> str:
        data = ", ".join(f"{key}={value}" for key, value in vars(record).items() if key not in _OWN_FIELDS)
        line = visible(f"{record.levelname.lower()}: {record.getMessage()}" + (f" ({data})" if data else ""))
        if record.exc_info and os.environ.get("KUBESYNC_DEBUG") == "1":
            line += "\n" + escaped(self.formatException(record.exc_info))
        return line


class _OnStandardError(logging.Handler):
    """Writes to what standard error is now: a live view takes its place, and prints such lines above itself."""

    def emit(self, record: logging.LogRecord) -> None:
        try:
            write_patiently(f"{self.format(record)}\n")
        except Exception:  # noqa: BLE001 - as every handler of the standard library
            self.handleError(record)


def set_up_logs() -> None:
    """Send the log of kubesync to standard error.

    Raises:
        UsageError: KUBESYNC_LOG_LEVEL is not a level.
    """
    level = os.environ.get("KUBESYNC_LOG_LEVEL", "").upper() or "WARNING"
    if level not in LEVELS:
        raise UsageError(f"KUBESYNC_LOG_LEVEL={level!r} is not one of {', '.join(LEVELS)}")
    # Modules make their loggers when they are imported, with this level.
    os.environ["POWERTOOLS_LOG_LEVEL"] = level
    root = logging.getLogger("kubesync")
    handler = _OnStandardError()
    handler.setFormatter(_Readable())
    root.handlers = [handler]
    root.propagate = False
    for name in [name for name in logging.root.manager.loggerDict if name.startswith("kubesync.")]:
        logging.getLogger(name).setLevel(level)
