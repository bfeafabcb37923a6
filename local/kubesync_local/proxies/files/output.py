"""What a proxy reads: replaces files that change, checks them before, reloads the proxy after.

    snapshots ── blocks (those that changed) ── files ── --check ── rename ── --reload

The mark ``.NAME.kubesync-reload`` beside a file says that the proxy has not loaded it yet. It survives a crash between rename and reload.
"""

import contextlib
import math
import os
import re
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from kubesync.actors.backoff import Backoff
from kubesync_local.proxies.files.commands import Command, CutOffError
from kubesync_local.proxies.files.locking import lock_of
from kubesync_local.proxies.files.writing import make_mark, remove_leftovers, replace_file, sync_directory
from kubesync_local.proxies.renderer import Renderer
from kubesync_local.proxies.servers import Snapshot

RELOAD_INTERVAL_SECONDS: Final = 1.0
_MARK: Final = ".kubesync-reload"
# Another program that changes the same file again and again is said so often.
_DISTURBED_SAID_SECONDS: Final = 60.0
_CHANGES_SAID: Final = 3
_RETRY: Final = Backoff(initial=1.0, cap=60.0)


_Signature = tuple[int, int, int]


@dataclass(slots=True)
class Output:
    """The files of one proxy. One thread uses it.

    Args:
        place: a file, or with ``directory`` a directory.
        check: gets the new file's path; not for a directory.
        now: monotonic seconds.
        stopped: whether kubesync ends. It cuts ``check`` and ``reload`` off.
        done: called with a line about each write, and about each reload that worked; None: nobody wants to know.
    """

    renderer: Renderer
    place: Path
    directory: bool
    check: Command | None
    reload: Command | None
    said: Callable[[str], None]
    now: Callable[[], float]
    stopped: Callable[[], bool] = lambda: False
    done: Callable[[str], None] | None = None
    #: What did not work last; empty: all is well.
    failed: str = ""
    #: How often files were written or removed.
    writes: int = 0
    _current: dict[str, str] = field(default_factory=dict)
    _tried: dict[str, str] | None = None
    _failures: int = 0
    _told: set[str] = field(default_factory=set)
    #: What each file was when it was written or read, and which were changed by somebody else since.
    _seen: dict[str, _Signature | None] = field(default_factory=dict)
    _disturbed: set[str] = field(default_factory=set)
    _changed_in_reload: set[str] = field(default_factory=set)
    _disturbed_said_at: float = -math.inf
    _checked_signature: _Signature | None = None
    _retry_at: float = 0.0
    _reloaded_at: float = -math.inf

    def open(self) -> None:
        """Read what is there now. Remove what a killed process left.

        Raises:
            OSError: it cannot be read.
        """
        if self.directory:
            self.place.mkdir(mode=0o755, parents=True, exist_ok=True)
        self._remove_leftovers()
        for path in sorted(self.place.glob("*.json")) if self.directory else [self.place]:
            if path.is_file():
                name = path.name if self.directory else ""
                signature = _signature(path)  # before the text: a later change is noticed
                text = path.read_text(encoding="utf-8", errors="replace")
                if not self.directory or self.renderer.form.is_own(text):
                    self._current[name], self._seen[name] = text, signature
        self.renderer.remember(self._current)

    @property
    def holds_servers(self) -> bool:
        """Whether what is there now has something to lose."""
        return self.renderer.holds_servers(self._current)

    @property
    def upstreams(self) -> Collection[str]:
        """Which the files have."""
        return self.renderer.form.blocks(self._current).keys()

    def disturbed(self) -> bool:
        """Whether somebody else changed or removed a file since it was written. If so, offer again: it is written again."""
        found = [name for name in self._current if name not in self._disturbed and not self._is_intact(name)]
        if found and self.now() >= self._disturbed_said_at + _DISTURBED_SAID_SECONDS:
            self._disturbed_said_at = self.now()
            more = f" and {len(found) - 1} more" if len(found) > 1 else ""
            self.said(f"somebody else changed or removed {self._path(found[0])}{more}: written again")
        self._disturbed.update(found)
        return bool(self._disturbed)

    def _is_intact(self, name: str) -> bool:
        path = self._path(name)
        signature = _signature(path)
        if signature == self._seen[name]:
            return True
        try:
            same = signature is not None and path.read_bytes() == self._current[name].encode()
        except OSError:
            return False
        if same:  # touched, or restored: nobody has to load it again
            self._seen[name] = signature
        return same

    def _remove_leftovers(self) -> None:
        if self.directory:
            # Who writes a single file of this directory has a lock of its own beside it.
            remove_leftovers(
                self.place,
                lambda name: name.endswith(".json") and not lock_of(self.place / name, directory=False).exists(),
            )
            return
        target = Path(os.path.realpath(self.place))
        with contextlib.suppress(FileNotFoundError):
            remove_leftovers(target.parent, lambda name: name == target.name)

    def offer(self, snapshots: Mapping[str, Snapshot]) -> bool:
        """Bring the files to these upstreams. Reload if they changed, or if the last reload failed.

        Returns whether files and proxy are up to date. If not, call again: after a failure the same files are tried again after a
        pause, other files at once. Within a second after a reload nothing is done.
        """
        if self.now() < self._reloaded_at + RELOAD_INTERVAL_SECONDS:
            return False
        files = self.renderer.files(snapshots)
        self.disturbed()
        if self.failed and files == self._tried and self.now() < self._retry_at:
            return False
        self._tried = files
        try:
            done = self._write(files) and self._reload_if_due()
        except CutOffError:
            return False
        except OSError as error:
            self._fail(f"{error.filename or self.place}: {error.strerror}; last configuration left unchanged")
            return False
        if done and self.failed:
            self.failed, self._failures = "", 0
            self.said("the configuration is up to date again")
        return done

    def settle(self) -> None:
        """Reload if a killed process owes it. For the time before anything was read; ``offer`` does it too."""
        if self.now() < max(self._retry_at, self._reloaded_at + RELOAD_INTERVAL_SECONDS):
            return
        try:
            if self._reload_if_due() and self.failed:
                self.failed, self._failures = "", 0
                self.said("the pending reload is done")
        except CutOffError:
            return
        except OSError as error:
            self._fail(f"{error.filename or self.place}: {error.strerror}")

    def _write(self, files: Mapping[str, str]) -> bool:
        changed = {
            name: text for name, text in files.items() if self._current.get(name) != text or name in self._disturbed
        }
        gone = [name for name in self._current if name not in files]
        if not changed and not gone:
            return True
        self.writes += 1
        if self.reload is not None:
            make_mark(self._mark)
            sync_directory(self._mark.parent)
        words = "" if self.done is None else self._changes_in_words(files)
        for name, text in changed.items():
            if not replace_file(self._path(name), text, self._checked, self._say_once):
                return False
            self._current[name], self._seen[name] = text, self._checked_signature
            self._disturbed.discard(name)
        for name in gone:
            self._path(name).unlink(missing_ok=True)
            del self._current[name], self._seen[name]
            self._disturbed.discard(name)
        if self.done is not None:
            self.done(f"written: {self.place}: {words}")
        return True

    def _changes_in_words(self, files: Mapping[str, str]) -> str:
        """What a write changes, by upstreams: ``prod/shop/web/80/TCP 2 -> 3 servers``."""
        form = self.renderer.form
        before, after = form.blocks(self._current), form.blocks(files)
        changed = [key for key in sorted(before.keys() | after.keys()) if before.get(key) != after.get(key)]
        words = []
        for key in changed[:_CHANGES_SAID]:
            old, new = (len(form.places(blocks[key])) if key in blocks else None for blocks in (before, after))
            words.append(
                f"{key} {'added' if old is None else 'removed'}"
                if old is None or new is None
                else f"{key} {old if old == new else f'{old} -> {new}'} server{'' if new == 1 else 's'}"
            )
        more = [f"{len(changed) - _CHANGES_SAID} more"] if len(changed) > _CHANGES_SAID else []
        return ", ".join([*words, *more]) or "no upstream differs"

    def _checked(self, path: Path) -> bool:
        accepted = self._is_accepted(path)
        self._checked_signature = _signature(path)  # it stays when the file is renamed
        return accepted

    def _is_accepted(self, path: Path) -> bool:
        if self.check is None:
            return True
        try:
            problem = self.check.run(path, self.stopped, called="the new file")
        except CutOffError:
            self.said("--check did not run to its end, last configuration left unchanged")
            raise
        if not problem:
            return True
        self._fail(f"--check refuses the new configuration, the last one stays: {problem}")
        return False

    def _reload_if_due(self) -> bool:
        if self.reload is None or not os.path.lexists(self._mark):
            return True
        self._reloaded_at = self.now()
        try:
            problem = self.reload.run(self.place, self.stopped)
        except CutOffError:
            self.said("--reload did not run to its end, the next start runs it again")
            raise
        self._accept_what_reload_does()
        if problem:
            self._fail(f"--reload failed, the proxy may use the last configuration: {problem}")
            return False
        self._mark.unlink(missing_ok=True)
        if self.done is not None:
            self.done(f"reloaded: {self.reload.line}")
        return True

    def _accept_what_reload_does(self) -> None:
        """A file that changes in two reloads, one after the other, is changed by ``--reload`` itself: written again, it would be loaded without end.

        One that changes in a single reload was perhaps changed by somebody else meanwhile: it is disturbed.
        """
        changed = {name for name in self._current if not self._is_intact(name)}
        for name in changed & self._changed_in_reload:
            self._seen[name] = _signature(self._path(name))
        self._changed_in_reload = changed

    def _path(self, name: str) -> Path:
        return self.place / name if name else self.place

    @property
    def _mark(self) -> Path:
        return self.place / _MARK if self.directory else self.place.parent / f".{self.place.name}{_MARK}"

    def _fail(self, problem: str) -> None:
        if _without_numbers(problem) != _without_numbers(self.failed):
            self.said(problem)
        self.failed = problem
        self._failures += 1
        self._retry_at = self.now() + _RETRY.delay(self._failures)

    def _say_once(self, text: str) -> None:
        if text not in self._told:
            self._told.add(text)
            self.said(text)


def _signature(path: Path) -> _Signature | None:
    """Which file this is, and in which state; None: there is none."""
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_ino, found.st_mtime_ns, found.st_size


def _without_numbers(problem: str) -> str:
    """To compare: proxies write their process id and the time into what they say."""
    return re.sub(r"\d+", "0", problem)
