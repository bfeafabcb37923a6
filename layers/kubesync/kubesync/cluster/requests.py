"""What operations ask a cluster for: to record lists of a recovery, to take sets over, to remove orphaned upstreams."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from aws_lambda_powertools import Logger

from kubesync.actors.actor import Steps
from kubesync.aws.fencing.writer import StaleStateError
from kubesync.aws.tables.audit import Entry
from kubesync.cluster.keys.committer import Committer
from kubesync.cluster.keys.reconciler import Reconciler
from kubesync.cluster.ports import ClusterPorts
from kubesync.domain.errors import KubesyncError
from kubesync.domain.objects import ObjectKey
from kubesync.domain.state import KeyState, Name, UpstreamState
from kubesync.domain.window import Mode
from kubesync.messages import Claim, RecordLists, RemoveOrphans, Sets

logger = Logger(service="kubesync", child=True)

_PARTS_OF_KEY: Final = 3


class Requests:
    """For the cluster's actor. An error of a request goes to whoever asked. What is recorded is not published: zones take it up later."""

    def __init__(self, ports: ClusterPorts, committer: Committer, reconciler: Reconciler) -> None:
        self._ports = ports
        self._committer = committer
        self._reconciler = reconciler

    def answer(self, asked: RecordLists | Claim | RemoveOrphans) -> Steps[None]:
        """Do it, and answer."""
        try:
            match asked:
                case RecordLists():
                    mode = Mode(distrust_upstreams=True)
                    recorded = yield from self._reconciler.record(asked.content, mode, flush=True)
                    asked.reply.set_result({r.value: why for r, why in (recorded.held or {}).items()})
                case Claim():
                    yield from self._claim(asked)
                    asked.reply.set_result(None)
                case RemoveOrphans():
                    asked.reply.set_result(sum(self._remove(*each) for each in asked.upstreams.items()))
        except KubesyncError as error:
            asked.reply.set_exception(error)
        except Exception as error:  # a fault of ours stops what was asked for, and only that
            logger.exception("a request failed", cluster=self._committer.states.config.name)
            asked.reply.set_exception(KubesyncError(f"{type(error).__name__}: {error}"))

    def _claim(self, asked: Claim) -> Steps[None]:
        def see(state: KeyState) -> KeyState | None:
            taken = {key: found for key, found in asked.sets[state.key].items() if state.intended.get(key) == found}
            return _with_taken(state, taken) if taken else None

        yield from self._reconciler.transform(asked.sets, see, "recover")

    def _remove(self, upstream: str, stands: UpstreamState) -> bool:
        """Remove one orphaned upstream. False: a key knows it by now, or it was written meanwhile."""
        tables, writer = self._committer.tables, self._ports.fenced_writer
        key = ObjectKey.parse("/".join(upstream.split("/")[:_PARTS_OF_KEY]))
        if upstream in self._committer.states.states([key])[key].upstreams:
            return False
        token, now = writer.token(), self._ports.scheduler.epoch()
        entry = Entry(f"upstream {upstream}", f"version {stands.version}", None, "resync", str(key))
        actions = [
            *tables.upstreams.remove(upstream, stands, now),
            *tables.named.marks(upstream, stands.version + 1),
            tables.audit.changes(key.cluster, [entry], writer.epoch, now, token),
        ]
        try:
            writer.run([key.cluster], actions, token)
        except StaleStateError:
            return False
        finally:
            tables.named.written(actions)
        return True


def _with_taken(state: KeyState, taken: Sets) -> KeyState:
    """The state with these record sets as its own. A name where nothing else is missing is in conflict no more."""
    applied = {**state.applied, **taken}
    missing = {Name.of(key) for key in state.intended if key not in applied}
    over = {Name.of(key) for key in taken} - missing
    conflicts = {name: why for name, why in state.conflicts.items() if name not in over}
    return replace(state, applied=applied, conflicts=conflicts)
