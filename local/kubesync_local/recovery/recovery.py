"""Recovery after tables were lost or restored from a backup: a person's decision, a dry run first (ADR 0007).

    journals of ours show epochs above the counter's     the counter is raised above them, so that a new master may write at all
    a wanted set stands in the zone in exactly that form  it is claimed as ours: nothing in the zone changes
    the same, in a zone without a journal of ours         listed: it is taken once we have written to the zone
    a wanted set stands there in another form,            listed: a person decides (make it the same, remove it, or let it be)
      or one that is in its way
    a set below a cluster's domain that no registered     listed: it may be what a vanished service left behind; with the clusters that
      cluster wants or holds, whatever its domain           were not listed now, of which only the tables are known
    a set that external-dns registered and nobody wants   listed, wherever it is in the zone: nobody keeps it without external-dns
    a TXT record set of external-dns' registry            listed: it may go after external-dns is switched off

Only sets that the clusters want in exactly the form in which they stand are taken, and only in zones whose journal says that this
deployment has written there. Of several Services that want one, its owner gets it, else the oldest. A set that another Service
has yet to let go of passes on as always, and is not taken: else it would go with that one. Nothing is taken for a Service with an
annotation that keeps it to the names that it holds (``reasons.WITHHOLDING``). Everything else stays foreign (I3).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase
from functools import partial
from typing import Any, Final

from kubesync.aws.route53.journal import Journal, journal_record_key, read_journal
from kubesync.aws.tables.control.clusters import ClusterConfig, ClusterTable
from kubesync.aws.tables.control.inflight import Inflight
from kubesync.aws.tables.control.lease import LeaseTable
from kubesync.cluster.keys.key_states import rules_of
from kubesync.domain.dns.drift import Stands, what_stands
from kubesync.domain.dns.records import RecordKey, RecordSet, Zone, in_the_way
from kubesync.domain.errors import KubesyncError, NotMasterError
from kubesync.domain.objects import ObjectKey
from kubesync.domain.reasons import WITHHOLDING
from kubesync.domain.sources.registry import created_at
from kubesync.domain.state import KeyState, Name
from kubesync.domain.window import Mode
from kubesync.log import logger
from kubesync.messages import Adopt, RecordLists
from kubesync.operations.listing import list_now, preview_lists
from kubesync.operations.ports import Master, MasterParts, Question, ResyncError, ask_cluster, check_time, unpaused
from kubesync_local.recovery.not_wanted import ClusterView, view_of
from kubesync_local.recovery.registry_report import RegistryReport
from kubesync_local.recovery.rows import differing, recovery_in_short, row
from kubesync_local.recovery.txt_registry import Affixes
from kubesync_local.recovery.unwanted import UnwantedSets

KINDS: Final = ("claimed", "unproven", "differing", "unwanted")
"""The lists of a cluster's report."""


@dataclass(frozen=True, slots=True)
class JournalFound:
    zone: Zone
    journal: Journal | None

    def document(self) -> dict[str, Any]:
        found = self.journal
        shown = None if found is None else {"owner": found.owner, "epoch": found.epoch, "batch": found.batch}
        return {"zone": self.zone.id, "name": self.zone.name, "journal": shown}


@dataclass(frozen=True, slots=True)
class RecoveryRequest:
    """A person's request.

    Args:
        cluster: one cluster; empty: all.
        names: which names (``*`` as in shells).
        affixes: of external-dns' TXT record sets.
        owner: external-dns' owner id; empty: every owner's sets are listed.
    """

    cluster: str = ""
    dry_run: bool = True
    names: str = "*"
    affixes: Affixes = field(default_factory=Affixes)
    owner: str = ""

    def about(self, key: RecordKey) -> bool:
        return fnmatchcase(key.name, self.names)

    def begin(self, parts: MasterParts, lease: LeaseTable) -> Recovery:
        """Read the journals of all clusters' zones. Raises the counter of epochs above them, unless this is a dry run."""
        settings = parts.settings
        lease.bind(settings.deployment)
        zones = {
            z.id: z for c in ClusterTable(parts.store).read(settings.shard).values() if c for z in rules_of(c).zones
        }
        journals = [
            JournalFound(zone, read_journal(parts.zones, journal_record_key(zone, settings.deployment, settings.shard)))
            for _, zone in sorted(zones.items())
        ]
        recovery = Recovery(self, journals, settings.deployment)
        if not self.dry_run:
            lease.raise_epoch(recovery.newest_epoch)
        return recovery


class Recovery:
    """Recovers one cluster or all, in a session of its own.

    ``ours``: epochs of journals of this deployment, by zone.
    """

    def __init__(self, request: RecoveryRequest, journals: list[JournalFound], deployment: str) -> None:
        self._request = request
        self._journals = journals
        found = [(f.zone.id, f.journal) for f in journals if f.journal is not None and f.journal.owner == deployment]
        self.ours = {zone_id: journal.epoch for zone_id, journal in found}
        self.dry_run, self.newest_epoch = request.dry_run, max(self.ours.values(), default=0)

    def run(self, master: Master) -> dict[str, Any]:
        """Recover, and store the report, if the tables take it. The report says what was recovered in any case."""
        report = self._recover(master)
        writer = master.fenced_writer
        token, kept = writer.token(), recovery_in_short(report)
        try:
            writer.run(
                (), [master.tables.audit.report("recovery", kept, master.parts.scheduler.epoch_seconds())], token
            )
        except KubesyncError as error:
            logger.warning("the report of the recovery could not be kept", error=str(error))
        return report

    def _recover(self, master: Master) -> dict[str, Any]:
        """An error of one cluster does not stop the others."""
        configs, request = master.configs, self._request
        names = [request.cluster] if request.cluster else unpaused(configs)
        sets = ZoneSets(master, {name: rules_of(configs[name]).zones for name in names if name in configs})
        external_dns = RegistryReport(request.affixes, request.owner, request.about)
        unwanted = UnwantedSets(ClusterTable(master.parts.store).read(), master.tables.state, request.about)
        clusters: list[dict[str, Any]] = []
        views: dict[str, ClusterView] = {}
        shown: set[RecordKey] = set()
        for name in names:
            try:
                if name not in configs:
                    raise ResyncError("no such cluster")
                recovery = ClusterRecovery(master, configs[name], self.ours, request, sets)
                clusters.append(recovery.run())
                views[name] = recovery.view
                shown |= recovery.differing
            except NotMasterError:
                raise
            except KubesyncError as error:
                clusters.append({"cluster": name, "error": str(error)})
            for zone, actual in sets.done_with(name):
                here = [each for each in sets.registered if zone.id in {its.id for its in rules_of(each).zones}]
                known = {each.name: views.get(each.name) or sets.stored_view(each) for each in here}
                external_dns.add(zone, actual, known, shown, sorted(known.keys() - views.keys()))
                unwanted.add(zone, actual, views, clusters)
        return {
            "dry_run": request.dry_run,
            "epoch": self.newest_epoch,
            "journals": [found.document() for found in self._journals],
            "clusters": clusters,
            "registries": external_dns.zones,
            "registered": external_dns.registered,
            "registry_records": external_dns.records,
        }


class ZoneSets:
    """What stands in the clusters' zones. A zone is read once, and forgotten with the last cluster that has it."""

    def __init__(self, master: Master, zones: Mapping[str, tuple[Zone, ...]]) -> None:
        """``zones``: of each cluster of the run, in the order of the run."""
        self._master = master
        self._last_user = {zone: cluster for cluster, its in zones.items() for zone in its}
        self._actual: dict[str, dict[RecordKey, RecordSet]] = {}
        self._stored: dict[str, ClusterView] = {}
        self.registered = [config for config in ClusterTable(master.parts.store).read().values() if config is not None]

    def of(self, zone: Zone) -> dict[RecordKey, RecordSet]:
        """Every set of a zone. Raises ZoneError."""
        if zone.id not in self._actual:
            self._actual[zone.id] = dict(self._master.parts.zones.walk(zone.id))
        return self._actual[zone.id]

    def done_with(self, cluster: str) -> Iterator[tuple[Zone, dict[RecordKey, RecordSet]]]:
        """The zones that no later cluster has; those that could be read. They are forgotten."""
        for zone, last in self._last_user.items():
            if last == cluster and zone.id in self._actual:
                yield zone, self._actual.pop(zone.id)

    def passing_on(self, cluster: str, states: Iterable[KeyState]) -> set[RecordKey]:
        """Sets that a Service has which no longer wants them: of this cluster, or of any other one, as the tables have it."""
        others = (each.name for each in self.registered if each.name != cluster)
        table = self._master.tables.state
        stored = (state for name in others for state in table.load_each(key for key, _ in table.open_keys(name)))
        return {key for state in (*states, *stored) for key in state.applied.keys() - state.intended.keys()}

    def stored_view(self, config: ClusterConfig) -> ClusterView:
        """The view of a cluster that is not listed in this run, as the tables have it."""
        if config.name not in self._stored:
            states = self._master.tables.state.load_all(config.name)
            self._stored[config.name] = view_of(config, states)
        return self._stored[config.name]


class ClusterRecovery:
    """Recovers one cluster, run by a master of the new epoch from the session's own thread."""

    def __init__(
        self,
        master: Master,
        config: ClusterConfig,
        ours: Mapping[str, int],
        request: RecoveryRequest,
        sets: ZoneSets,
    ) -> None:
        self._master = master
        self._config = config
        self._rules = rules_of(config)
        self._request = request
        self._ours = ours
        self._sets = sets
        self.differing: set[RecordKey] = set()
        self._passing_on: set[RecordKey] = set()

    def run(self) -> dict[str, Any]:
        """Claim the sets that stand exactly as they are wanted. List the rest. Raises ResyncError.

        Then ``view`` is what the cluster asks for, and ``differing`` holds the sets that are in its way.
        """
        master, config = self._master, self._config
        if self._request.dry_run:
            preview = preview_lists(master, config, Mode(reread_upstreams=True), self._check)
            states = list(preview.states.values())
            held: Mapping[str, str] = {resource.value: reason for resource, reason in preview.held.items()}
        else:
            with list_now(master, config, self._check) as content:
                record: Question[Mapping[str, str]] = partial(RecordLists, content)
                held = ask_cluster(master, config.name, record, self._check)
            states = list(master.tables.state.load_all(config.name))
        report: dict[str, Any] = {"cluster": config.name} | {kind: [] for kind in KINDS}
        # If the tables are older than many deletions, the guard of absences takes the cluster for an emptied one (I5).
        report["held"] = dict(held)
        self._passing_on = self._sets.passing_on(config.name, states)
        taken = [key for zone in self._rules.zones for key in self._zone(zone, states, report)]
        self.view = view_of(self._config, states, taken)
        return report

    def _zone(self, zone: Zone, states: list[KeyState], report: dict[str, Any]) -> set[RecordKey]:
        """Returns the sets that were taken over."""
        withheld = {state.key for state in states if any(problem.code in WITHHOLDING for problem in state.problems)}
        actual = self._sets.of(zone)
        at_name: dict[str, list[RecordKey]] = defaultdict(list)
        for key in actual:
            at_name[key.name].append(key)
        claims = self._master.tables.claims.read({Name.of(key) for state in states for key in state.intended})
        claimed: dict[ObjectKey, dict[RecordKey, RecordSet]] = defaultdict(dict)
        taken: set[RecordKey] = set()
        for state, key, record_set in _wants(states, zone):
            claim = claims.get(Name.of(key))
            if not self._request.about(key) or state.key in withheld:
                continue
            if (
                key in state.applied
                or key in self._passing_on
                or key in taken
                or (claim is not None and claim.owner != state.key)
            ):
                continue
            service = str(state.key)
            if what_stands(record_set, actual.get(key)) is not Stands.OURS:
                others = [
                    other
                    for other in at_name[key.name]
                    if other not in state.applied and in_the_way(other, actual[other], key, record_set)
                ]
                self.differing.update(others)
                report["differing"] += [differing(other, actual[other], key, record_set, service) for other in others]
            elif zone.id in self._ours:
                claimed[state.key][key] = record_set
                taken.add(key)
                report["claimed"].append(row(key, record_set, service))
            else:
                report["unproven"].append(row(key, record_set, service))
        if self._request.dry_run:
            return set()
        if claimed:
            taking: Question[None] = partial(Adopt, claimed)
            ask_cluster(self._master, self._config.name, taking, self._check)
        self._know(zone)
        return taken

    def _know(self, zone: Zone) -> None:
        """Note that this deployment has written to the zone: its journal is known again (see ZoneJournal).

        What the cluster had not closed when the tables were backed up may have changed since. What stands in the zone was compared just now.
        """
        master = self._master
        if zone.id not in self._ours:
            return
        before, epoch = master.parts.inflight.read(zone.id), master.fenced_writer.epoch
        unclosed = {} if before is None else {n: of for n, of in before.unclosed.items() if n != self._config.name}
        if before is not None and before.knows(self._ours[zone.id]) and before.unclosed == unclosed:
            return
        token = master.fenced_writer.token()
        after = Inflight("", epoch, ()) if before is None else replace(before, epoch=epoch, unclosed=unclosed)
        _, actions = master.parts.inflight.put(zone.id, before, after, token)
        master.fenced_writer.run([self._config.name], actions, token)

    def _check(self) -> None:
        check_time(self._master, "the recovery")


def _wants(states: Iterable[KeyState], zone: Zone) -> Iterator[tuple[KeyState, RecordKey, RecordSet]]:
    """The sets that are wanted in a zone. The oldest Services come first, as they do where they wait for names."""

    def age(state: KeyState) -> tuple[str, str]:
        return created_at(state), str(state.key)

    for state in sorted(states, key=age):
        for key, record_set in state.intended.items():
            if key.zone_id == zone.id:
                yield state, key, record_set
