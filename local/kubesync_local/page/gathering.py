"""What the page shows, how old it is, and who reads it.

    kept                      read by                          read again after
    ----                      -------                          ----------------
    overview                  whoever asks first               5 s
    problems of named         the thread of facts, before      60 s, or 10 times as long as reading took
      upstreams               the next cluster
    facts of a cluster        one thread, in turn              15 s, or 10 times as long as reading took
    one Service               whoever asks first               10 s
    changes                   whoever asks first               5 s

One reads at a time; others wait for it and take what it read. So a page that many tabs show costs what one costs. Changes, which
can take seconds, have a turn of their own. Facts and problems of named upstreams are read only while somebody looks at a page that
needs them, and no page waits long for them.
"""

import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final, Self

from botocore.exceptions import BotoCoreError, ClientError

from kubesync.actors.parallel import ParallelMap
from kubesync.actors.threads import ThreadScheduler
from kubesync.aws.tables.control.clusters import ClusterConfig
from kubesync.aws.tables.control.lease import LeaseTable
from kubesync.aws.tables.state import BUCKETS, StateTable
from kubesync.domain.errors import KubesyncError, UsageError
from kubesync.domain.objects import ObjectKey
from kubesync.domain.state import KeyState, OpenMark
from kubesync_local.commands.show.explain import gather
from kubesync_local.commands.show.status import lease_document
from kubesync_local.documents.audit_log import AuditLog
from kubesync_local.documents.credential_rows import credential_rows
from kubesync_local.documents.explanation import document
from kubesync_local.documents.lag import LagMinute, lag_by_minute
from kubesync_local.documents.listener_rows import listener_rows
from kubesync_local.documents.named_upstream import problems_of_named
from kubesync_local.page.answers import Answer, Answers, is_old
from kubesync_local.page.facts import ClusterFacts, FactsReader
from kubesync_local.page.lag import MINUTES
from kubesync_local.workplace.readings import ListenerReadings, ZoneProblem, pause_of
from kubesync_local.workplace.shards import problems_of_zones, shards_of
from kubesync_local.workplace.workplace import Workplace

OVERVIEW_SECONDS: Final = 5.0
NAMED_SECONDS: Final = 60.0
"""All named upstreams are read with all their members."""
EXPLAINED_SECONDS: Final = 10.0
FACTS_SECONDS: Final = 15.0
FACTS_SHARE: Final = 10.0
"""Reading facts again waits so many times as long as it took: a large deployment costs a tenth of what reading all the time would."""
KEPT_SERVICES: Final = 200_000
_THREADS: Final = 8
_ENDED: Final = "the page ended"

ERRORS: Final = (KubesyncError, BotoCoreError, ClientError)
"""What a page says to a person. Anything else is a bug."""


def in_words(error: Exception) -> str:
    """An error of ``ERRORS`` on one line."""
    return str(error) if isinstance(error, KubesyncError) else f"AWS SDK: {error}"


@dataclass(frozen=True, slots=True)
class Overview:
    """The lease, the clusters, their listeners and open keys, problems of zones, and lag. Small, read at once.

    ``configs`` by name; None: this release cannot read it. ``seconds``: how long reading took. ``others``: leases of other shards.
    """

    read_at: float
    seconds: float
    lease: Mapping[str, Any]
    configs: Mapping[str, ClusterConfig | None]
    listeners: Mapping[str, Sequence[Mapping[str, Any]]]
    marks: Mapping[str, Sequence[tuple[ObjectKey, OpenMark]]]
    zone_problems: Mapping[str, ZoneProblem]
    lag: tuple[LagMinute, ...]
    credentials: Mapping[str, Sequence[Mapping[str, Any]]] = field(default_factory=dict)
    others: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)

    @property
    def running(self) -> bool:
        """Whether a session holds the lease."""
        return bool(self.lease["state"] == "held")

    def serves(self, config: ClusterConfig) -> bool:
        """Whether a session of the cluster's shard runs."""
        return bool(self.others.get(config.shard, self.lease)["state"] == "held")

    @property
    def clusters(self) -> list[ClusterConfig]:
        """Those that can be read, by name."""
        return [config for _, config in sorted(self.configs.items()) if config is not None]


@dataclass(frozen=True, slots=True)
class Named:
    """The problems of all named upstreams. ``read_at``: epoch seconds; None: they are not read yet.

    ``failed``: why they could not be read the last time; empty if they could.
    """

    problems: Sequence[Mapping[str, Any]] = ()
    read_at: float | None = None
    failed: str = ""


NO_NAMED: Final = Named()


@dataclass(slots=True)
class _Facts:
    """What the thread has read and is to read: facts of clusters, problems of named upstreams. Guarded by ``Gatherer._changed``.

    Problems of named upstreams are read again from ``named_due`` (epoch seconds) on.
    """

    known: dict[str, ClusterFacts] = field(default_factory=dict)
    failed: dict[str, Answer[str]] = field(default_factory=dict)
    wanted: dict[str, ClusterConfig] = field(default_factory=dict)
    reading: str = ""
    named: Named = NO_NAMED
    named_wanted: bool = False
    named_reading: bool = False
    named_due: float = 0.0


class Gatherer:
    """Reads for the pages. Its methods are called from the threads of requests."""

    def __init__(self, work: Workplace) -> None:
        self._work = work
        self._clock = work.application.scheduler
        self._one = threading.Lock()  # held by whoever reads
        self._overview: Overview | None = None
        self._parallel = ParallelMap(ThreadScheduler(), _THREADS)
        self._explained = Answers(self._clock, self._one, EXPLAINED_SECONDS)
        self._changes = Answers(self._clock, threading.Lock(), OVERVIEW_SECONDS)
        self._changed = threading.Condition()
        self._facts = _Facts()
        self._ended = False
        self._thread = threading.Thread(target=self._read_facts, name="facts", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        with self._changed:
            self._ended = True
            self._changed.notify_all()

    @property
    def place(self) -> str:
        """Which deployment this is."""
        return f"{self._work.settings.deployment}, shard {self._work.settings.shard}"

    @property
    def shard(self) -> str:
        """The shard whose lease is shown."""
        return self._work.settings.shard

    def now(self) -> float:
        """Epoch seconds."""
        return self._clock.epoch_seconds()

    # --- the overview ---

    def overview(self, *, again: bool = False) -> Overview:
        """What is known of all clusters together, at most 5 s old. Raises one of ``ERRORS``."""
        with self._one:
            seen = self._overview
            if seen is None or self._old(seen.read_at, OVERVIEW_SECONDS, again=again):
                self._overview = seen = self._read_overview()
            return seen

    def _read_overview(self) -> Overview:
        began, at, work = self._clock.monotonic(), self.now(), self._work
        store, shard = work.store, work.settings.shard
        held = work.lease.read()
        lease = lease_document(held, int(at * 1000), pause_of(store))
        configs = work.clusters.read()
        names = sorted(configs)
        listeners, state = ListenerReadings(store), StateTable(store)
        rows = self.for_each(lambda name: listener_rows(name, listeners), names)
        known = [config for config in configs.values() if config is not None]
        ends = {config.name: config for config in known}
        credentials = self.for_each(lambda name: credential_rows(ends[name], listeners, at), sorted(ends))
        marks = self.for_each(lambda name: list(state.open_keys(name)), names)
        others = shards_of(known, shard)[1:]
        paused, problems = pause_of(store), problems_of_zones(store, [shard, *others])
        lag = tuple(lag_by_minute(AuditLog(store), held, at - MINUTES * 60, at))
        return Overview(
            read_at=at,
            seconds=self._clock.monotonic() - began,
            lease=lease,
            configs=configs,
            listeners=dict(zip(names, rows, strict=True)),
            marks=dict(zip(names, marks, strict=True)),
            zone_problems=problems,
            others={other: lease_document(LeaseTable(store, other).read(), int(at * 1000), paused) for other in others},
            lag=lag,
            credentials=dict(zip(sorted(ends), credentials, strict=True)),
        )

    # --- one Service, changes ---

    def explanation(self, key: ObjectKey, config: ClusterConfig, *, again: bool) -> Answer[dict[str, Any] | None]:
        """One Service as ``kubesync explain`` has it, with what the zones hold now; None: kubesync has seen no such Service."""

        def explain() -> dict[str, Any] | None:
            state = StateTable(self._work.store).load([key])[key]
            return None if state == KeyState(key) else document(gather(state, config, self._work))

        return self._explained.get(key, explain, again=again)

    def changes[T](self, question: object, read: Callable[[Workplace], T], *, again: bool) -> Answer[T]:
        """The answer to a question about the audit, at most 5 s old. ``question`` identifies it. Other pages do not wait for it."""
        return self._changes.get(question, lambda: read(self._work), again=again)

    def for_each[T, R](self, call: Callable[[T], R], things: Sequence[T]) -> list[R]:
        """Read a few at a time. When the page ends, no new call begins."""

        def unless_ended(thing: T) -> R:
            if self._ended:
                raise UsageError(_ENDED)
            return call(thing)

        return self._parallel(unless_ended, things)

    def _old(self, read_at: float, seconds: float, *, again: bool) -> bool:
        return is_old(self.now(), read_at, seconds, again=again)

    # --- facts of clusters ---

    def facts(
        self, configs: Iterable[ClusterConfig], wait_seconds: float, *, services: bool = False, again: bool = False
    ) -> dict[str, ClusterFacts]:
        """What is known of these clusters' Services. Old facts are read again; they are given if that takes longer than the wait.

        Args:
            services: also the rows of Services, which may have been dropped to save memory.
            again: read what is not quite new.
        """
        asked = list(configs)
        # Many clusters together are read less often than one alone: what counts is what a visitor makes kubesync read.
        with self._changed:
            took = sum(known.seconds for name in {c.name for c in asked} if (known := self._facts.known.get(name)))
            for config in asked:
                if self._is_wanted(config.name, took, services=services, again=again):
                    self._facts.wanted[config.name] = config
            self._changed.notify_all()
            names = {config.name for config in asked}
            self._changed.wait_for(lambda: not names & self._pending(), wait_seconds)
            found = {name: known for name in sorted(names) if (known := self._facts.known.get(name)) is not None}
            for name in found if services else ():  # the last used stay longest
                self._facts.known[name] = self._facts.known.pop(name)
            return found

    def failed(self, name: str) -> str:
        """Why the facts of a cluster could not be read the last time; empty if they could."""
        with self._changed:
            return self._facts.failed[name].value if name in self._facts.failed else ""

    # --- named upstreams ---

    def named(self, wait_seconds: float) -> Named:
        """The problems of named upstreams, as they were read last. Old ones are read again, if somebody asks; the wait is for that."""
        with self._changed:
            facts, now = self._facts, self.now()
            due = now >= facts.named_due or now < (facts.named.read_at or 0.0)
            if due and not facts.named_reading:
                facts.named_wanted = True
                self._changed.notify_all()
            self._changed.wait_for(lambda: not (facts.named_wanted or facts.named_reading), wait_seconds)
            return facts.named

    def _read_named(self) -> None:
        began, at = self._clock.monotonic(), self.now()
        try:
            found, why = problems_of_named(self._work.store, self.for_each), ""
        except ERRORS as error:
            found, why = [], in_words(error)
        except Exception as error:  # noqa: BLE001 - named upstreams that cannot be read hide no cluster
            found, why = [], f"{type(error).__name__}: {error}"
        took = self._clock.monotonic() - began
        with self._changed:
            facts = self._facts
            facts.named = replace(facts.named, failed=why) if why else Named(found, at)
            facts.named_due = at + max(FACTS_SECONDS if why else NAMED_SECONDS, FACTS_SHARE * took)
            facts.named_reading = False

    # --- the thread ---

    def _pending(self) -> set[str]:
        return {*self._facts.wanted, *([self._facts.reading] if self._facts.reading else [])}

    def _is_wanted(self, name: str, took: float, *, services: bool, again: bool) -> bool:
        known, failed = self._facts.known.get(name), self._facts.failed.get(name)
        if failed is not None and not self._old(failed.read_at, FACTS_SECONDS, again=again):
            return False
        if known is None or (services and not known.has_services):
            return True
        return self._old(known.read_at, max(FACTS_SECONDS, FACTS_SHARE * took), again=again)

    def _read_facts(self) -> None:
        """The thread: named upstreams, then one cluster after the other, in the order in which somebody asked."""
        facts = self._facts
        while True:
            with self._changed:
                facts.reading = ""
                self._changed.notify_all()
                self._changed.wait_for(lambda: self._ended or facts.wanted or facts.named_wanted)
                if self._ended:
                    return
                config = None
                if facts.named_wanted:
                    facts.named_wanted, facts.named_reading = False, True
                else:
                    facts.reading = next(iter(facts.wanted))
                    config = facts.wanted.pop(facts.reading)
            if config is None:
                self._read_named()
            else:
                self._read_facts_of(config)

    def _read_facts_of(self, config: ClusterConfig) -> None:
        at, name = self.now(), config.name
        try:
            facts, why = self._read_cluster(config), ""
        except ERRORS as error:
            facts, why = None, in_words(error)
        except Exception as error:  # noqa: BLE001 - one cluster that cannot be read hides no other
            facts, why = None, f"{type(error).__name__}: {error}"
        with self._changed:
            self._facts.failed.pop(name, None)
            if facts is None:
                self._facts.failed[name] = Answer(at, 0.0, why)
            else:
                self._facts.known.pop(name, None)
                self._facts.known[name] = facts
                self._drop_services(name)

    def _read_cluster(self, config: ClusterConfig) -> ClusterFacts:
        began, at, reader = self._clock.monotonic(), self.now(), FactsReader(config)
        for bucket in range(BUCKETS):
            with self._one:  # others go first between two of them
                if self._ended:
                    raise UsageError(_ENDED)
                reader.add(StateTable(self._work.store).load_bucket(config.name, bucket))
        return reader.done(at, self._clock.monotonic() - began)

    def _drop_services(self, newest: str) -> None:
        """Forget rows of the clusters that were used longest ago; their counts stay."""
        known = self._facts.known
        kept = sum(len(facts.services) for facts in known.values())
        for name in list(known):
            if kept <= KEPT_SERVICES or name == newest:
                return
            kept -= len(known[name].services)
            known[name] = known[name].without_services()
