"""Composes named upstreams: reads marks of changes, composes, writes, and removes the marks. Runs in the actor's thread.

marks ── registry, if it changed ── upstreams of Services ── compose ── transactions, the last one removes the marks

The transactions check the shard's fence (I2). A change after a mark was read renews the mark. Then the composer writes what it read and
leaves the mark for the next round: so Services that change all the time do not prevent every write. If the master dies before the end,
the mark stays for the next master (I1).

registered        in the table           writes
----------        ------------           ------
yes               with the same nodes    none (I6)
yes               different or missing   all its slices, as a new version
no                yes                    a mark of its removal
no                marked or missing      none
by another shard  any                    none: that shard's master writes it

A *mark*: see ``actor``. New references to upstreams of Services: composing waits until their clusters have noted them.

named upstreams                     cluster
---------------                     -------
follow the new reference
Refer ────────────────────────────> planned a Service before the reference was known: leaves no mark of its change
writes what it has planned
<──────────────────────────── Noted leaves marks from now on
read the upstream: it is written (I1)
"""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Final

from kubesync.actors.scheduler import Scheduler
from kubesync.aws.dynamodb.store import Action, Put
from kubesync.aws.fencing.writer import FencedWriter, StaleStateError
from kubesync.aws.tables.audit import NAMED, Entry
from kubesync.aws.tables.control.named_upstreams import NamedUpstreamTable, Registry, is_mark
from kubesync.aws.tables.of_clusters import Tables
from kubesync.aws.tables.upstreams import UpstreamTable
from kubesync.domain.dns.records import Node
from kubesync.domain.errors import NewerSchemaError, NotMasterError, StoreBusyError
from kubesync.domain.upstreams.named import PREFIX, NamedUpstream, below, compose, dependents_of, is_named, named_key
from kubesync.domain.upstreams.nodes import node_of
from kubesync.messages import CompareNamed, Message, Refer

# In one transaction, in addition to the fence check and the audit. Puts are slices of about 100 KB; the limit is 4 MB.
_MAX_ACTIONS: Final = 90
_MAX_PUTS: Final = 30
_REMIND_SECONDS: Final = 5.0
_TORN_READS: Final = 5
# Stands for the nodes of an upstream that cannot be read. Compared by identity.
_UNREADABLE: Final[tuple[Node, ...]] = (Node("", 0, ready=False),)


@dataclass(frozen=True, slots=True)
class Rewrite:
    """The write that corrects a named upstream: its actions belong to one transaction. ``entry``: for the audit.

    ``drift``: ``missing``, ``changed``, or ``stray`` (not registered).
    """

    name: str
    actions: tuple[Action, ...]
    entry: Entry
    drift: str


class ReferencesError(Exception):
    """Clusters must note new references before anything is composed. The caller tries again once they have."""


@dataclass(frozen=True, slots=True)
class NamedPorts:
    """What composing needs. ``to_cluster`` returns False for a cluster that is not served here."""

    shard: str
    table: NamedUpstreamTable
    tables: Tables
    fenced_writer: FencedWriter
    scheduler: Scheduler
    to_cluster: Callable[[str, Message], bool]
    not_master: Callable[[NotMasterError], None]


@dataclass(slots=True)
class NamedReport:
    """The counts of one session: registered named upstreams of the shard, writes, and the problem that stops composing now."""

    registered: int = 0
    written: int = 0
    problem: str = ""


class Composer:
    """Composes and compares named upstreams.

    ``waiting``: clusters that have not noted new references yet. Ask them again at ``remind_at`` (monotonic).
    """

    def __init__(self, ports: NamedPorts) -> None:
        self.report = NamedReport()
        self.waiting: set[str] = set()
        self.remind_at = 0.0
        self._ports = ports
        self._registry = Registry()  # as read last

    def compose(self) -> None:
        """Compose what the marks name, write it, and remove the marks. Called a moment after marks were made, and before a comparison.

        A name is *stuck* if an upstream that it is made of, or its own, cannot be read now. It is left as it is, and its marks stay.

        Raises ReferencesError as ``_refresh_registry``; StoreBusyError: some names are stuck, the others are written; another KubesyncError.
        """
        marks = self._ports.table.marks(self._ports.shard)  # by upstream: the version that was marked
        if not marks:
            return
        registry = self._refresh_registry()
        # 1. Which named upstreams are made of what is marked, each with the reason for the audit.
        whys: dict[str, str] = {}
        for upstream, version in sorted(marks.items()):
            why = "configuration" if is_named(upstream) else f"upstream {upstream} version {version}"
            whys |= dict.fromkeys(self._names_of(upstream), why)
        rewrites, stuck = self._find_rewrites(whys)
        # 2. The marks that stay: of what cannot be composed now.
        kept = {upstream for upstream in marks if not stuck.keys().isdisjoint(self._names_of(upstream))}
        # This release does not understand these registrations, a newer one may: their marks stay for it.
        kept |= {named_key(name) for name in registry.unreadable}
        table, shard = self._ports.table, self._ports.shard
        done = [table.unmark(shard, up, version) for up, version in sorted(marks.items()) if up not in kept]
        # 3. Write, and remove the other marks last: if the session dies before, the next one composes again (I1).
        self._write(rewrites, done)
        if stuck:
            said = ", ".join(sorted(set(stuck.values())))
            raise StoreBusyError(f"cannot be read whole: {said}; `kubesync resync` mends what was changed by hand")

    def _names_of(self, upstream: str) -> Iterable[str]:
        """Return the names to compose when an upstream has changed. Leaves out names whose registration this release does not understand.

        ``upstream``: its key in the table: a Service's (``<cluster>/...``) or a named one's (``named/<name>``).
        """
        names = self._ports.tables.named.index.get(upstream, frozenset())
        # A named upstream that is not registered any more is not in the index. It still has to be removed from the table.
        own = {upstream.removeprefix(PREFIX)} if is_named(upstream) else set[str]()
        return sorted((names | own) - self._registry.unreadable)

    def _refresh_registry(self) -> Registry:
        """Read the registry again if its version has changed, and return it.

        A cluster may have recorded a change of an upstream before it knew that a named upstream refers to it, and so left no mark. So each
        cluster is asked to note new references, and nothing is composed before all have answered.

        Raises ReferencesError while a cluster has not answered.
        """
        if self._ports.table.version() != self._registry.version:
            # The key of a Service's upstream begins with its cluster.
            self.waiting = {upstream.partition("/")[0] for upstream in self.load() if not is_named(upstream)}
            self.ask()  # leaves in ``waiting`` only clusters that will answer
        if self.waiting:
            raise ReferencesError
        return self._registry

    def ask(self) -> None:
        """Ask each cluster in ``waiting`` to note new references. Removes clusters that are not served here from ``waiting``: nobody would answer.

        The actor calls it again every few seconds while it waits: a cluster that has started anew may have lost the message.
        """
        self.remind_at = self._ports.scheduler.monotonic() + _REMIND_SECONDS
        refer = Refer(self._registry.version)
        for cluster in sorted(self.waiting):
            if not self._ports.to_cluster(cluster, refer):
                self.waiting.discard(cluster)

    def noted(self, cluster: str, number: int) -> None:
        """Note that a cluster has answered ``Refer``. ``number``: the registry's version that it was asked about. An older one is ignored."""
        if number == self._registry.version:
            self.waiting.discard(cluster)

    def load(self) -> frozenset[str]:
        """Read the registry. From now on, clusters leave a mark when an upstream changes that this registry refers to.

        Returns the keys of upstreams that the registry read before did not refer to: their clusters must note the new references. The caller
        at the beginning of a session ignores them: no cluster has planned anything yet.
        """
        registry, shard = self._ports.table.read(), self._ports.shard
        ours = {name: entry for name, entry in registry.named.items() if entry.shard == shard}
        index = dependents_of(ours)  # by key of an upstream: the names to compose when it changes
        self._registry, self.report.registered = registry, len(ours)
        return self._ports.tables.named.follow(index)

    def _find_rewrites(self, whys: Mapping[str, str]) -> tuple[Sequence[Rewrite], Mapping[str, str]]:
        """Compose these names, compare them with the table, and find the writes that correct it. Reads only: the caller writes.

        Returns the writes, and the names that are stuck, each with the upstream that cannot be read now: of a Service, or its own.

        ``whys``: the names to compare, each with the reason for the audit. Names of other shards are left out.
        """
        named, ports = self._registry.named, self._ports
        made_of = {name: _constituents(name, named) for name in whys}
        upstreams = sorted(set[str]().union(*made_of.values()))
        # By upstream of a Service: its nodes; None: it does not exist; _UNREADABLE.
        read = dict(
            zip(upstreams, ports.tables.reads(partial(_nodes_of, ports.tables.upstreams), upstreams), strict=True)
        )
        unreadable = {upstream for upstream, nodes in read.items() if nodes is _UNREADABLE}
        # An unreadable upstream stops only the named upstreams that are made of it (I4).
        stuck = {name: min(of_one & unreadable) for name, of_one in made_of.items() if of_one & unreadable}
        rewrites: list[Rewrite] = []
        for name in sorted(whys.keys() - stuck.keys()):
            entry = named.get(name)  # None: it is not registered, or not any more
            if entry is not None and entry.shard != ports.shard:
                continue
            nodes = None if entry is None else compose(name, named, read).nodes  # None: remove it
            try:
                rewrite = self._rewrite_of(name, nodes, whys[name])
            except NewerSchemaError:  # its own item is of a newer release
                stuck[name] = named_key(name)
                continue
            if rewrite is not None:
                rewrites.append(rewrite)
        return rewrites, stuck

    def _rewrite_of(self, name: str, nodes: Sequence[Node] | None, why: str) -> Rewrite | None:
        """Return the write that gives a named upstream these nodes (None: removes it). Returns None if nothing is to be written."""
        upstream, table = named_key(name), self._ports.tables.upstreams
        stored = table.read(upstream)
        there = stored is not None and not stored.deleted
        # The table in the file's head: with the same nodes; or not registered, and marked as deleted or missing.
        if (stored is not None and nodes is not None and stored.holds(nodes)) or (nodes is None and not there):
            return None
        current = None if stored is None else stored.state
        state, actions = table.put(upstream, current, nodes, self._ports.scheduler.epoch_seconds())
        before = f"version {stored.version}" if stored is not None and there else None
        after = None if nodes is None else f"version {state.version}, {len(nodes)} nodes"
        drift = "stray" if nodes is None else "changed" if there else "missing"
        return Rewrite(name, tuple(actions), Entry(f"upstream {upstream}", before, after, why), drift)

    def _write(self, rewrites: Sequence[Rewrite], last: Sequence[Action] = ()) -> None:
        """Write each named upstream in one transaction, several together if they fit. ``last`` removes marks, after all of them.

        Transactions are run in order, so a mark goes only with, or after, all that was composed for it.
        """
        parts = [(rewrite.actions, [rewrite.entry]) for rewrite in rewrites]
        parts += [((action,), []) for action in last]
        actions: list[Action] = []
        entries: list[Entry] = []
        for of_part, of_audit in parts:
            together = [*actions, *of_part]
            if len(together) > _MAX_ACTIONS or sum(isinstance(action, Put) for action in together) > _MAX_PUTS:
                self._run(actions, entries)
                actions, entries = [], []
            actions += of_part
            entries += of_audit
        self._run(actions, entries)

    def _run(self, actions: Sequence[Action], entries: Sequence[Entry]) -> None:
        """Write these actions and audit entries in one transaction. Marks that were renewed since they were read stay: repeats it without them.

        Raises StaleStateError if anything else has changed.
        """
        fenced_writer, now = self._ports.fenced_writer, self._ports.scheduler.epoch_seconds()
        while actions:
            token = fenced_writer.token()
            audit = (
                [self._ports.tables.audit.changes(NAMED, entries, fenced_writer.epoch, now, token)] if entries else []
            )
            try:
                fenced_writer.run([], [*actions, *audit], token)
            except StaleStateError as stale:  # ``places``: the keys whose writes were refused
                renewed = {action.key for action in actions if is_mark(action)}.intersection(stale.places)
                if not renewed or not renewed.issuperset(stale.places):
                    raise
                actions = [action for action in actions if action.key not in renewed]
                self._ports.tables.named.on_note()  # wakes the actor: what was marked again is composed next
            else:
                self.report.written += len(entries)
                return

    def compare(self, asked: CompareNamed) -> list[dict[str, str]]:
        """Compare named upstreams (of one cluster, or all) with the table for a full resync, and correct them unless it is a dry run.

        Returns one row for each name that differs and has no mark: with a mark, the difference is only a change that is composed soon. Its
        ``drift``: as in ``Rewrite``; ``unknown``: the name is stuck (``compose``).

        A comparison of all includes unregistered ones (it scans the table). Only a forced resync removes those: a registry
        that was lost, or restored from a backup, does not prove that they are unwanted (I5).

        Raises StoreError, StaleStateError: some could not be compared. Raises ReferencesError.
        """
        if not asked.dry_run:
            self.compose()
        marked = self._ports.table.marks(self._ports.shard).keys()
        registry = self._refresh_registry()
        whys = dict.fromkeys(self._names_to_compare(asked.cluster, registry), "resync")
        rewrites, stuck = self._find_rewrites(whys)
        if not asked.dry_run:
            self._write([each for each in rewrites if each.drift != "stray" or asked.force])
        to_be_composed = {name for upstream in marked for name in self._names_of(upstream)}
        drifts = {each.name: each.drift for each in rewrites if each.name not in to_be_composed}
        drifts |= dict.fromkeys(stuck, "unknown")
        return [{"upstream": named_key(name), "drift": drift} for name, drift in sorted(drifts.items())]

    def _names_to_compare(self, cluster: str, registry: Registry) -> Collection[str]:
        """Return the names of the named upstreams that a full resync compares.

        ``cluster``: only those that are made of its upstreams, whose keys begin with it. Empty: all that are registered for this shard, and those
        in the table that nobody has registered.
        """
        index = self._ports.tables.named.index
        if cluster:
            return sorted({name for up, names in index.items() if up.partition("/")[0] == cluster for name in names})
        in_table = {
            stored.upstream.removeprefix(PREFIX)
            for stored in self._ports.tables.upstreams.read_all(is_named, nodes=False)
            if not stored.deleted
        }
        ours = {name for name, entry in registry.named.items() if entry.shard == self._ports.shard}
        return sorted(ours | (in_table - registry.named.keys() - registry.unreadable))


def _constituents(name: str, named: Mapping[str, NamedUpstream]) -> set[str]:
    """The Services' upstreams that a named one is made of, itself or by those that it includes. None, if it is not registered."""
    return {source.upstream for each in below(name, named) for source in named[each].services}


def _nodes_of(table: UpstreamTable, upstream: str) -> Sequence[Node] | None:
    """Read the nodes of one version of an upstream, again if versions are mixed: a query is no snapshot.

    None: the upstream does not exist. ``_UNREADABLE``: no complete version could be read.
    """
    for _ in range(_TORN_READS):
        try:
            stored = table.read(upstream)
            if stored is None or (stored.complete and stored.deleted):
                return None
            if stored.complete:
                return tuple(map(node_of, stored.nodes))
        except (NewerSchemaError, KeyError, TypeError):  # a newer release or somebody else wrote it
            break
    return _UNREADABLE
