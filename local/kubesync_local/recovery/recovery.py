"""Recovery after tables were lost or restored from a backup: a person's decision, a dry run first (ADR 0007).

    journals of ours show epochs above the counter's     the counter is raised above them, so that a new master may write at all
    a wanted set stands in the zone in exactly that form  it is claimed as ours: nothing in the zone changes
    the same, in a zone without a journal of ours         listed: it is taken once we have written to the zone
    a wanted set stands there in another form,            listed: a person decides (make it the same, remove it, or let it be)
      or one that is in its way
    a set below a cluster's domain that nobody wants      listed: it may be what a vanished service left behind

Only sets that the clusters want in exactly the form in which they stand are taken, and only in zones whose journal says that this
deployment has written there. Of several Services that want one, its owner gets it, else the oldest. Nothing is taken for a Service
with an annotation that keeps it to the names that it holds (``reasons.WITHHOLDING``). Everything else stays foreign (I3).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from typing import Any, Final

from kubesync.actors.answer import Answer
from kubesync.aws.route53.journal import Journal, is_journal, journal_record_key, read_journal
from kubesync.aws.tables.audit import describe
from kubesync.aws.tables.control.clusters import ClusterConfig, ClusterTable
from kubesync.aws.tables.control.inflight import Inflight
from kubesync.cluster.keys.key_states import rules_of
from kubesync.domain.dns.records import RecordKey, RecordSet, Zone, in_the_way
from kubesync.domain.dns.standing import Stands, what_stands
from kubesync.domain.errors import KubesyncError, NotMasterError
from kubesync.domain.objects import ServiceKey
from kubesync.domain.reasons import WITHHOLDING
from kubesync.domain.state import KeyState, Name
from kubesync.domain.window import Mode
from kubesync.messages import Claim, RecordLists
from kubesync.operations.asking import ResyncError, ask_cluster, check_time
from kubesync.operations.listing import list_now, preview_lists
from kubesync.operations.ports import Master, MasterParts, unpaused

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
    """A person's request: one cluster (empty: all), a dry run or not, and which names (``*`` as in shells)."""

    cluster: str = ""
    dry_run: bool = True
    names: str = "*"

    def about(self, key: RecordKey) -> bool:
        return fnmatchcase(key.name, self.names)

    def begin(self, parts: MasterParts) -> Recovery:
        """Read the journals of all clusters' zones. Writes nothing."""
        settings = parts.settings
        zones = {z.id: z for c in ClusterTable(parts.store).all(settings.shard) for z in rules_of(c).zones}
        journals = [
            JournalFound(zone, read_journal(parts.zones, journal_record_key(zone, settings.deployment, settings.shard)))
            for _, zone in sorted(zones.items())
        ]
        return Recovery(self, journals, settings.deployment)


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
        """An error of one cluster does not stop the others."""
        configs = master.configs
        names = [self._request.cluster] if self._request.cluster else unpaused(configs)
        clusters: list[dict[str, Any]] = []
        for name in names:
            try:
                if name not in configs:
                    raise ResyncError("no such cluster")
                clusters.append(ClusterRecovery(master, configs[name], self.ours, self._request).run())
            except NotMasterError:
                raise
            except KubesyncError as error:
                clusters.append({"cluster": name, "error": str(error)})
        return {
            "dry_run": self._request.dry_run,
            "epoch": self.newest_epoch,
            "journals": [found.document() for found in self._journals],
            "clusters": clusters,
        }


class ClusterRecovery:
    """Recovers one cluster, run by a master of the new epoch from the session's own thread."""

    def __init__(
        self, master: Master, config: ClusterConfig, ours: Mapping[str, int], request: RecoveryRequest
    ) -> None:
        self._master = master
        self._config = config
        self._rules = rules_of(config)
        self._request = request
        self._ours = ours

    def run(self) -> dict[str, Any]:
        """Claim the sets that stand exactly as they are wanted. List the rest. Raises ResyncError."""
        master, config = self._master, self._config
        if self._request.dry_run:
            preview = preview_lists(master, config, Mode(distrust_upstreams=True), self._check)
            states = list(preview.states.values())
            held: Mapping[str, str] = {resource.value: reason for resource, reason in preview.held.items()}
        else:
            content = list_now(master, config, self._check)
            answer: Answer[Mapping[str, str]] = Answer(master.parts.scheduler)
            held = ask_cluster(master, config.name, RecordLists(content, answer), answer, self._check)
            states = list(master.tables.state.load_all(config.name))
        report: dict[str, Any] = {"cluster": config.name} | {kind: [] for kind in KINDS}
        # If the tables are older than many deletions, the guard of absences takes the cluster for an emptied one (I5).
        report["held"] = dict(held)
        for zone in self._rules.zones:
            self._zone(zone, states, report)
        return report

    def _zone(self, zone: Zone, states: list[KeyState], report: dict[str, Any]) -> None:
        withheld = {state.key for state in states if any(problem.code in WITHHOLDING for problem in state.problems)}
        standing = dict(self._master.parts.zones.walk(zone.id))
        at_name: dict[str, list[RecordKey]] = defaultdict(list)
        for key in standing:
            at_name[key.name].append(key)
        claims = self._master.tables.claims.read({Name.of(key) for state in states for key in state.intended})
        claimed: dict[ServiceKey, dict[RecordKey, RecordSet]] = defaultdict(dict)
        taken: set[RecordKey] = set()
        wanted: set[RecordKey] = set()
        for state, key, record_set in _wants(states, zone):
            wanted.add(key)
            claim = claims.get(Name.of(key))
            if not self._request.about(key) or state.key in withheld:
                continue
            if key in state.applied or key in taken or (claim is not None and claim.owner != state.key):
                continue
            service = str(state.key)
            if what_stands(record_set, standing.get(key)) is not Stands.OURS:
                report["differing"] += [
                    _row(other, standing[other], service) | {"wanted": describe(record_set), "wanted_type": key.type}
                    for other in at_name[key.name]
                    if other not in state.applied and in_the_way(other, standing[other], key)
                ]
            elif zone.id in self._ours:
                claimed[state.key][key] = record_set
                taken.add(key)
                report["claimed"].append(_row(key, record_set, service))
            else:
                report["unproven"].append(_row(key, record_set, service))
        for key, record_set in standing.items():
            below = key.name == self._rules.domain or key.name.endswith("." + self._rules.domain)
            left_out = key.type in ("SOA", "NS") or is_journal(key, record_set)
            if below and key not in wanted and not left_out and self._request.about(key):
                report["unwanted"].append(_row(key, record_set, ""))
        if not self._request.dry_run:
            if claimed:
                answer: Answer[None] = Answer(self._master.parts.scheduler)
                ask_cluster(self._master, self._config.name, Claim(claimed, answer), answer, self._check)
            self._know(zone)

    def _know(self, zone: Zone) -> None:
        """Note that this deployment has written to the zone: its journal is known again (see ZoneJournal).

        What the cluster owed when the tables were backed up may have changed since. What stands in the zone was compared just now.
        """
        master = self._master
        if zone.id not in self._ours:
            return
        before, epoch = master.inflight.read(zone.id), master.fenced_writer.epoch
        owed = {} if before is None else {n: of for n, of in before.owed.items() if n != self._config.name}
        if before is not None and before.knows(self._ours[zone.id]) and before.owed == owed:
            return
        token = master.fenced_writer.token()
        after = Inflight("", epoch, ()) if before is None else replace(before, epoch=epoch, owed=owed)
        _, actions = master.inflight.put(zone.id, before, after, token)
        master.fenced_writer.run([self._config.name], actions, token)

    def _check(self) -> None:
        check_time(self._master, "the recovery")


def _wants(states: Iterable[KeyState], zone: Zone) -> Iterator[tuple[KeyState, RecordKey, RecordSet]]:
    """The sets that are wanted in a zone. The oldest Services come first, as they do where they wait for names."""

    def age(state: KeyState) -> tuple[str, str]:
        return state.service.created_at if state.service is not None else "", str(state.key)

    for state in sorted(states, key=age):
        for key, record_set in state.intended.items():
            if key.zone_id == zone.id:
                yield state, key, record_set


def _row(key: RecordKey, record_set: RecordSet, service: str) -> dict[str, Any]:
    return {
        "zone": key.zone_id,
        "name": key.name,
        "type": key.type,
        **({"identifier": key.identifier} if key.identifier else {}),
        "service": service,
        "stands": describe(record_set),
    }
