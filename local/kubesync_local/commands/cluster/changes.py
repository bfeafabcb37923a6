"""A change of a registered cluster, a new cluster or a removal: what differs, what it means for records, and its write.

``cluster add``, ``set`` and ``apply`` share this. Every write is conditional on the revision that was read.
"""

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType

from kubesync.aws.tables.control.clusters import ClusterConfig
from kubesync.aws.tables.control.zone_access import ZoneAccessTable
from kubesync.domain.errors import UsageError
from kubesync.domain.merge import GUARD_SHARE
from kubesync_local.commands.cluster.form import Form
from kubesync_local.plans.of_state import plan_of_change
from kubesync_local.plans.plan import Group, Line, Plan, Sign, some
from kubesync_local.plans.view import show_for_question
from kubesync_local.registration.clusters import why_clashing
from kubesync_local.terminal.asking import NOTHING_CHANGED, can_ask, confirm
from kubesync_local.terminal.output import remark
from kubesync_local.workplace.people import note
from kubesync_local.workplace.registry import ZoneRoles
from kubesync_local.workplace.workplace import Workplace


@dataclass(frozen=True, slots=True)
class Change:
    """One cluster, before and after. ``before`` is None for a new cluster. ``disabled``: it is to be so; else it stays what it is."""

    before: Form | None
    after: Form
    disabled: bool = False

    @property
    def name(self) -> str:
        return self.after.config.name

    @property
    def settings(self) -> list[Line]:
        """Every setting that differs, as lines of a plan. Of a new cluster: every one that is not the default."""
        old = None if self.before is None else _settings(self.before)
        new = _settings(self.after)
        if old is None:
            bare = ClusterConfig(name=self.name, domain="x", server="https://x", zones=self.after.config.zones)
            plain = {**_settings(Form(bare, {})), "domain": None, "server": None, "zones": None}
            return [Line(Sign.ADD, name, None, (value,)) for name, value in new.items() if value != plain.get(name)]
        return [
            Line(Sign.CHANGE, name, (old.get(name, "none"),), (new.get(name, "none"),))
            for name in {**old, **new}
            if old.get(name) != new.get(name)
        ]

    @property
    def said(self) -> str:
        """What was done, with the old and the new value of each setting of a cluster that was there."""
        if self.before is None:
            return f"cluster {self.name} added"
        lines = [f"{line.subject} {_side(line.before)} -> {_side(line.after)}" for line in self.settings]
        return f"cluster {self.name} changed: {', '.join(lines)}"

    def plan(self, work: Workplace) -> Plan:
        """What differs, and what the tables say of its record sets and upstreams."""
        if self.before is None:
            note = f"not known before the first list: the record sets of cluster {self.name}"
            return _plan_of(f"cluster {self.name}: new", self.settings) + Plan(notes=(note,))
        records = plan_of_change(self.before.config, self.after.config, work.store, work.now())
        return replace(_plan_of(f"cluster {self.name}", self.settings) + records, quiet=records.quiet, in_conflict=0)

    def write(self, work: Workplace, did: str, confirmed: Mapping[str, int] = MappingProxyType({})) -> ClusterConfig:
        """Write roles of zones and the configuration, and who did it. Raises ChangedMeanwhileError if somebody else changed it since it was read.

        Args:
            did: the command, for the audit.
            confirmed: how many deletions of record sets a person has confirmed, by cluster.
        """
        ways = ZoneRoles(work.store)
        for zone_id, access in self.after.access.items():
            if self.before is None or zone_id not in self.before.access or self.before.access[zone_id] != access:
                ways.put(zone_id, access)
        kept = {"revision": 0, "disabled": self.disabled}
        if self.before is not None:
            disabled = self.disabled or self.before.config.disabled
            kept = {"revision": self.before.config.revision, "disabled": disabled}
        config = self.after.config.model_copy(update=kept)
        stored = work.clusters.put(config, allowed_deletions=confirmed.get(self.name, 0))
        note(
            work, self.name, did, [(line.subject, _joined(line.before), _joined(line.after)) for line in self.settings]
        )
        return stored


def registered(config: ClusterConfig, work: Workplace) -> Form:
    """A registered cluster with the roles of its zones."""
    ways = ZoneAccessTable(work.store)
    return Form(config, {zone.id: ways.read(zone.id) for zone in config.zones})


def refuse_clash(config: ClusterConfig, others: Sequence[ClusterConfig], before: ClusterConfig | None = None) -> None:
    """Raise UsageError if Services of another cluster could have the same names. ``before``: how it is registered."""
    for other in others:
        clash = why_clashing(config, other, before) if other.name != config.name and not other.deleting else None
        if clash is not None:
            raise UsageError(clash)


def agree(plan: Plan, question: str, *, yes: bool, allowed: int | None = None) -> dict[str, int]:
    """Show a plan and ask on a terminal. Elsewhere nobody can be asked: then it may delete nothing, and what is not known is said.

    Args:
        yes: a person said so beforehand: nothing is asked. This is not enough for more deletions than the guard believes.
        allowed: how many deletions of record sets a person has confirmed beforehand (``--allow-deletions``).

    Returns:
        How many deletions of record sets are confirmed, by cluster.

    Raises:
        DeclinedError: the answer is no.
        UsageError: it would delete something, or nobody knows whether it would, and nobody can be asked; or more than was confirmed.
    """
    gone = sum(unwanted for unwanted, _ in plan.unwanted.values())
    if allowed is not None and gone > allowed:
        raise UsageError(
            f"this would delete {some(gone, 'record set')}, --allow-deletions allows {allowed}; {NOTHING_CHANGED}"
        )
    if not yes and can_ask():
        show_for_question(plan)
        confirm(f"{question} {plan.question}" if plan.numbers else question)
    elif allowed is None and plan.too_many:
        show_for_question(plan)
        raise UsageError(
            f"this would delete {some(plan.too_many, 'record set')}, more than {GUARD_SHARE:.0%} of a cluster: "
            f"if you mean it, give --allow-deletions {gone}; {NOTHING_CHANGED}"
        )
    elif not yes and allowed is None and plan.numbers.delete:
        show_for_question(plan)
        raise UsageError(f"{plan.question} Not a terminal: confirm with --yes; {NOTHING_CHANGED}")
    elif not yes and plan.may_delete:
        # A confirmed number is one of known deletions.
        show_for_question(plan)
        raise UsageError(
            f"record sets may go that this plan does not know of. Not a terminal: confirm with --yes; {NOTHING_CHANGED}"
        )
    else:
        for note_of_plan in plan.unseen:
            remark(note_of_plan)
    return {
        name: allowed if allowed and len(plan.unwanted) == 1 else unwanted
        for name, (unwanted, _) in plan.unwanted.items()
    }


def _side(side: tuple[str, ...] | None) -> str:
    return _joined(side) or "none"


def _joined(side: tuple[str, ...] | None) -> str | None:
    return None if side is None else ", ".join(side)


def _plan_of(title: str, settings: Sequence[Line]) -> Plan:
    return Plan((Group(title, tuple(settings)),)) if settings else Plan()


def _settings(form: Form) -> dict[str, str]:
    """Every setting as JSON; of certificates and external ids only a digest, which tells one from another."""
    fields = form.config.model_dump(mode="json", exclude={"revision", "name", "disabled", "deleting", "zones"})
    shown = {name: json.dumps(value, ensure_ascii=False) for name, value in fields.items() if value is not None}
    shown |= {name: _digest(fields[name]) for name in ("ca_pem", "external_id") if fields[name] is not None}
    zones = []
    for zone in form.config.zones:
        access = form.access.get(zone.id)
        external = (
            f" with external id {_digest(access.external_id)}" if access is not None and access.external_id else ""
        )
        private = " private" if zone.private else ""
        zones.append(f"{zone.name} {zone.id}{private}" + (f" by {access.role}{external}" if access is not None else ""))
    return {"zones": ", ".join(zones), **shown}


def _digest(text: str) -> str:
    return f"(digest {hashlib.sha256(text.encode()).hexdigest()[:8]})"
