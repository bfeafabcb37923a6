"""What a row of the table is, and what the code makes of it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from pydantic import ValidationError

from harness.dns_cases.notation import key_of, line_of, rules_for, sets_of
from harness.dns_cases.passing import PassingCase
from kubesync.aws.tables.control.clusters import ClusterConfig, ZoneReference, explain
from kubesync.cluster.claims.allowed_names import keep_to_held_names
from kubesync.domain.batches import units_of
from kubesync.domain.dns.desired import Desired, with_zone_aliases
from kubesync.domain.dns.records import RecordKey
from kubesync.domain.objects import EndpointsObject, ObjectKey, Service
from kubesync.domain.plan import Policy, assign_names, changes_of, waits_for
from kubesync.domain.sources import ingresses, services
from kubesync.domain.sources.ingresses import Ingress
from kubesync.domain.state import KeyState, Name, policies_of
from kubesync_local.registration.clusters import why_clashing, why_outside, why_useless

UNKNOWN = "not known yet"


@dataclass(frozen=True)
class Case:
    """Given one object, or several by their keys, these record sets are wanted and these problems reported.

    Args:
        pods: endpoints objects of every object; None: not every listener has listed.
        sets: lines (see ``notation``); ``UNKNOWN``: nothing may be concluded yet.
        stands: lines of what the Service has already. problems: ``CODE subject``; before it ``KEY: `` where there are several Services.
    """

    title: str
    given: Service | Ingress | Mapping[str, Service | Ingress] | None
    sets: Sequence[str] = ()
    problems: Sequence[str] = ()
    pods: Sequence[EndpointsObject] | None = ()
    settings: Mapping[str, Any] = field(default_factory=dict)
    stands: Sequence[str] = ()

    @property
    def objects(self) -> Mapping[str, Service | Ingress | None]:
        if isinstance(self.given, Mapping):
            return self.given
        return {"Ingress:web" if isinstance(self.given, Ingress) else "web": self.given}

    def outcome(self) -> tuple[list[str], list[str]]:
        """Lines of record sets and problems as the code has them, in the order of names."""
        lines, problems, stands = self._outcome(frozenset())
        while stands != (stands := self._outcome(stands)[2]):  # aliases to names of the zone follow what stands there
            lines, problems, _ = self._outcome(stands)
        return lines, problems

    def _outcome(self, standing: frozenset[RecordKey]) -> tuple[list[str], list[str], frozenset[RecordKey]]:
        several = isinstance(self.given, Mapping)
        found = {key_of(text): self._desired(key_of(text), each, standing) for text, each in self.objects.items()}
        ages = {key_of(text): each.created_at for text, each in self.objects.items() if each is not None}
        owners: dict[Name, ObjectKey | None] = {}
        lines, problems = [], []
        # Of several that want a name, the oldest has it: they are planned in that order.
        for key in sorted(found, key=lambda key: (ages.get(key, ""), key)):
            wanted = found[key]
            if wanted.records is None:
                return [UNKNOWN], [f"{problem.code} {problem.subject}" for problem in wanted.problems], standing
            waits = _waits(key, policies_of(wanted.records), owners)
            of_waits = {name: owners.get(waits.get(name, name)) for name in policies_of(wanted.records)}
            assigned = assign_names(KeyState(key), wanted.records, of_waits, waits)
            owners |= dict.fromkeys(assigned.gained, key)
            zones = len(rules_for(key.cluster, self.settings).zones) > 1
            lines += [(k, line_of(k, assigned.intended[k], zones=zones)) for k in sorted(assigned.intended)]
            said = [*wanted.problems, *assigned.problems]
            problems += [
                (f"{key}: " if several else "") + f"{problem.code} {problem.subject}".rstrip() for problem in said
            ]
        return [line for _, line in sorted(lines)], sorted(problems), frozenset(k for k, _ in lines)

    def _desired(self, key: ObjectKey, given: Service | Ingress | None, standing: frozenset[RecordKey]) -> Desired:
        stands, rules = sets_of(self.stands), rules_for(key.cluster, self.settings)
        before = KeyState(key, intended=stands, applied=stands)
        if isinstance(given, Ingress):
            want = ingresses.desired(key, given, rules, before.held)
        else:
            want = services.desired(key, given, self.pods, rules, before.held)

        def types_at(zone_id: str, target: str, *_via: str) -> tuple[set[str], set[str]]:
            types = {each.type for each in standing if (each.zone_id, each.name) == (zone_id, target)}
            return types, types

        return keep_to_held_names(with_zone_aliases(want, types_at), before)


def _waits(key: ObjectKey, policies: Mapping[Name, str], owners: Mapping[Name, ObjectKey | None]) -> dict[Name, Name]:
    """Where each name waits, as in a cluster with rules for names. Simple and weighted sets alone: as in one without."""
    found = {}
    for name, policy in policies.items():
        of_name = {each: owner for each, owner in owners.items() if each.name == name.name and owner is not None}
        if policy not in ("simple", "weighted") or any(each.seat for each in of_name):
            found[name] = waits_for(name, policy, key, of_name)
    return found


@dataclass(frozen=True)
class ChangeCase:
    """Given what stands and what is wanted, a policy allows these changes; what lands together is one text.

    Args:
        changes: ``- LINE`` and ``+ LINE``, joined with `` / `` where they go into one batch whatever its size.
    """

    title: str
    stands: Sequence[str]
    wanted: Sequence[str]
    changes: Sequence[str]
    policy: Policy = Policy.SYNC

    def outcome(self) -> list[str]:
        """The changes as the code has them."""
        key = key_of("web")
        state = KeyState(key, applied=sets_of(self.stands), intended=sets_of(self.wanted))
        units = units_of(key, changes_of(state, self.policy))
        return [
            " / ".join(
                f"{sign} {line_of(change.key, side, zones=False)}"
                for change in unit.changes
                for sign, side in (("-", change.before), ("+", change.after))
                if side is not None
            )
            for unit in units
        ]


@dataclass(frozen=True)
class RegistrationCase:
    """Given these options, beside clusters that are registered, this is said; empty: it is accepted."""

    title: str
    options: Mapping[str, Any]
    says: str = ""
    others: Sequence[Mapping[str, Any]] = ()

    def outcome(self) -> str:
        """What the code says, in the order in which ``kubesync cluster add`` asks."""
        try:
            config = a_cluster(self.options)
        except ValidationError as invalid:
            return explain(invalid)
        said = why_useless(config) or why_outside(config)
        for other in self.others:
            said = said or why_clashing(config, a_cluster({"name": "other", **other}))
        return said or ""


def a_cluster(options: Mapping[str, Any]) -> ClusterConfig:
    """Cluster ``prod`` of ``k8s.example.com`` in zone Z1 (``example.com``)."""
    fields = {
        "name": "prod",
        "server": "https://prod.test:6443",
        "domain": "k8s.example.com",
        "zones": ("Z1 example.com",),
    }
    fields |= options
    zones = tuple(ZoneReference(id=text.split()[0], name=text.split()[1]) for text in fields["zones"])
    return ClusterConfig(**{**fields, "zones": zones})


@dataclass(frozen=True)
class Rule:
    """A rule and the rows that show it."""

    title: str
    cases: Sequence[Case | ChangeCase | RegistrationCase | PassingCase]
