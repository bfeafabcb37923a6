"""Applies changed configurations, removals and resync requests to a running master."""

import math
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import Final

from kubesync.aws.fencing.writer import StaleStateError
from kubesync.aws.tables.control.clusters import ClusterConfig
from kubesync.aws.tables.control.next_owners import NextOwnerTable
from kubesync.domain.errors import ErrorCode, StoreError
from kubesync.log import logger
from kubesync.messages import Promoted
from kubesync.session.master import Master

_RESTART_SECONDS: Final = 10.0
_AGAIN_SECONDS: Final = 2.0


class Control:
    """Applies what people change while the master runs. Requested resyncs run in another thread (``Master.resyncs``).

    The session's thread calls it, so no method may wait long. ``due_at`` (monotonic seconds): when to call ``run``, if nobody signals before:

        a call has done everything                    after ``control_seconds``
        DynamoDB is busy, and a change stays undone   after _AGAIN_SECONDS

    The next session reads all configurations, so it finds what this one did not do.
    """

    def __init__(self, master: Master) -> None:
        self._master = master
        self._parts = master.parts
        self.due_at = -math.inf

    def take_resyncs(self) -> None:
        """Give the resyncs that are requested, or must be continued, to ``Master.resyncs``. ``run`` calls it; the session also does, when it begins.

        Afterwards the next ``run`` is due in ``control_seconds``. Raises StoreError if the requests cannot be read. Then ``due_at`` is not changed:
        at the beginning of a session ``run`` is due at once, and within ``run`` it is due after _AGAIN_SECONDS.
        """
        clock = self._parts.scheduler
        self._master.resyncs.take(self._parts.resyncs.clean_up_and_list(clock.epoch_seconds()))
        self.due_at = clock.monotonic() + self._parts.settings.control_seconds

    def run(self) -> None:
        """Read configurations and requests, and apply what is new. Raises StoreError if they cannot be read: it is due again soon.

        configuration                              what happens
        -------------                              ------------
        is gone                                    ``_drop``
        is new, or has another revision            ``_apply``
        cannot be read, the cluster is served      nothing: the cluster goes on as it is
        cannot be read, the cluster is not served  nothing: it cannot be served
        """
        # Whenever this raises, or leaves something undone, the next call comes soon. If all is done, ``take_resyncs`` sets a later time.
        soon = self.due_at = self._parts.scheduler.monotonic() + _AGAIN_SECONDS
        self.forget_ended()
        found, known = self._master.registered.read(), self._master.configs
        # None in ``found``: it cannot be read. A cluster that is served keeps the configuration that it has; any other is left out.
        configs = {name: config or known[name] for name, config in found.items() if config or name in known}
        gone = [partial(self._drop, name) for name in sorted(known.keys() - configs.keys())]
        kept = [partial(self._apply, name, config) for name, config in sorted(configs.items())]
        acts: tuple[Callable[[], None], ...] = (*gone, *kept, self._promote_next_owners)
        done = [self._attempt(act) for act in acts]
        self._master.named.wake()  # a command that changes a named upstream leaves a mark for it
        self.take_resyncs()
        if not all(done):
            self.due_at = soon

    def forget_ended(self) -> None:
        """Stop serving clusters that were removed or are unreadable. Tells the person who watches about removed ones."""
        for name in self._master.served.forget_ended():
            self._master.term.progress("removed", {"cluster": name})

    def _attempt(self, act: Callable[[], None]) -> bool:
        """Call ``act``, unless the session must end. False: it is not done, and must be tried again. An error stops no other act (I4)."""
        if self._master.term.time_is_up:
            return False
        try:
            act()
        except (StoreError, StaleStateError) as error:
            logger.warning("configuration not applied yet, trying again", error=str(error))
            return False
        return True

    def _drop(self, name: str) -> None:
        """Stop serving a cluster whose configuration was deleted."""
        self._master.served.drop(name, ErrorCode.CONFIG_DELETE, self._soon())
        self._master.term.progress("configuration", {"cluster": name, "key": ErrorCode.CONFIG_DELETE.key})

    def _apply(self, name: str, config: ClusterConfig) -> None:
        """Serve a new cluster, or apply a changed configuration. Does nothing if the revision is the one that is served."""
        known = self._master.configs.get(name)
        if known is not None and known.revision == config.revision:
            return
        code = ErrorCode.CONFIG_DELETE if config.deleting else ErrorCode.CONFIG_UPDATE
        self._master.served.adopt(config, code, self._soon(), self._master.term.deadline)
        self._master.term.progress("configuration", {"cluster": name, "key": code.key if known else "ADDED"})

    def _promote_next_owners(self) -> None:
        """Wake keys of this shard's clusters to which masters of other shards gave names, so that they are planned.

        A name that its owner lets go passes to the key that waits longest for it, and an item says so (``NextOwner``). A master promotes keys
        of its own clusters itself; keys of other shards are found here. An item stays until its key is planned. Then the key does not wait for
        the name any more, and the item is removed.
        """
        if self._parts.settings.shards == 1:
            return
        noted = NextOwnerTable(self._parts.store).read()
        mine = [note for note in noted if note.key.cluster in self._master.configs]
        states = self._master.tables.state.load({note.key for note in mine})
        writer = self._master.fenced_writer
        for note in mine:
            if note.name in states[note.key].waits:
                self._master.send(note.key.cluster, Promoted((note.key,)))
                continue
            # The key does not wait any more: it was planned. So the note is removed (``done`` is this write).
            with suppress(StaleStateError):  # the key was given the name again: the next call sees that
                writer.run((), [note.done], writer.token())

    def _soon(self) -> float:
        """Return until when (monotonic) old listeners must have ended, before a configuration is changed or dropped."""
        return min(self._parts.scheduler.monotonic() + _RESTART_SECONDS, self._master.term.deadline)
