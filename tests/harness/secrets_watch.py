"""The credentials that tests use, and where they must never be seen: logs, tables, zones, reports, messages, output (I8)."""

import base64
import contextlib
import logging
import re
import zlib
from collections.abc import Iterator, Mapping
from typing import Any, Final

TOKEN: Final = "token-of-a-test-that-must-not-leak"
AWS_SECRET: Final = "aws-secret-of-a-test-that-must-not-leak"
_TELLTALE: Final = "of-a-test-that-must-not-leak"
_FORMS: Final = tuple(
    re.escape(form)
    for form in (
        _TELLTALE,
        # Whatever stands before it, base64 writes a text in one of three ways.
        *(base64.b64encode(b"-" * shift + _TELLTALE.encode()).decode()[4:-4] for shift in range(3)),
    )
)
# A bearer token of whatever kind, a token for EKS, the signature of a request to AWS.
_ANY_CREDENTIAL: Final = re.compile(
    "|".join(
        [*_FORMS, r"Bearer [A-Za-z0-9._~+/-]{16,}", r"k8s-aws-v1\.[A-Za-z0-9_-]{8,}", r"X-Amz-Signature=[0-9a-f]{8,}"]
    )
)


def leak_in(value: object) -> str:
    """The first credential in a value and whatever it holds, deflated bytes included; empty where there is none."""
    for text in _texts(value):
        found = _ANY_CREDENTIAL.search(text)
        if found is not None:
            return text[max(0, found.start() - 60) : found.end() + 20]
    return ""


def _texts(value: object) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, bytes):
        yield value.decode("utf-8", "replace")
        with contextlib.suppress(zlib.error):
            yield zlib.decompress(value).decode("utf-8", "replace")
    elif isinstance(value, Mapping):
        for key, inner in value.items():
            yield from _texts(key)
            yield from _texts(inner)
    elif isinstance(value, list | tuple | set | frozenset):
        for inner in value:
            yield from _texts(inner)
    elif value is not None:
        yield repr(value)


class LeakingLogs(logging.Handler):
    """Looks at every record of every logger: message, data and traceback. ``leaks`` is what it found."""

    def __init__(self) -> None:
        super().__init__(logging.DEBUG)
        self.leaks: list[str] = []
        self._formatter = logging.Formatter()

    def emit(self, record: logging.LogRecord) -> None:
        if record.name.startswith(("botocore", "urllib3", "boto3")):
            return  # not ours, and switched off unless a test asks for it
        data: dict[str, Any] = {key: value for key, value in record.__dict__.items() if key != "exc_info"}
        traceback = self._formatter.formatException(record.exc_info) if record.exc_info else ""
        found = leak_in([record.getMessage(), traceback, data])
        if found:
            self.leaks.append(f"{record.name}: {found}")
