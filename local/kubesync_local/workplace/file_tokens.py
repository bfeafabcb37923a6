"""Bearer tokens of a kubeconfig: a literal one, and one in a file that is rotated."""

import threading
from pathlib import Path
from typing import Final

from kubesync.actors.scheduler import Clock
from kubesync.domain.errors import DeniedError

# Kubernetes rotates projected service account tokens on disk. Its own clients read them again every minute.
_FILE_SECONDS: Final = 60.0


class StaticToken:
    """A token that never changes."""

    def __init__(self, token: str) -> None:
        self._token = token

    def token(self, *, fresh: bool = False) -> str:  # noqa: ARG002 - there is no other
        return self._token


class FileToken:
    """A token in a file, read again when it is older than a minute, or when the server refused the last one.

    Raises (at ``token``): DeniedError when the file cannot be read or is empty.
    """

    def __init__(self, path: str | Path, clock: Clock) -> None:
        self._path = Path(path)
        self._clock = clock
        self._lock = threading.Lock()
        self._value = ""
        self._read_at = 0.0

    def token(self, *, fresh: bool = False) -> str:
        with self._lock:
            now = self._clock.monotonic()
            if fresh or not self._value or now - self._read_at >= _FILE_SECONDS:
                self._value = self._read()
                self._read_at = now
            return self._value

    def _read(self) -> str:
        try:
            value = self._path.read_text(encoding="ascii").strip()
        except OSError as error:
            raise DeniedError(f"no token: {self._path}: {error.strerror or type(error).__name__}") from None
        except UnicodeDecodeError:
            raise DeniedError(f"no token: {self._path} holds no token") from None
        if not value:
            raise DeniedError(f"no token: {self._path} is empty")
        return value
