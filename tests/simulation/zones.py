"""Route 53 in this process: the pure rules of the strict stand-in behind ``aws.zones.ZoneClient``, without HTTP."""

from __future__ import annotations

import copy
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final, Literal

from harness.fakes.memory_store import LandLater
from kubesync.aws.route53.errors import ERROR_BY_CODE
from kubesync.aws.route53.wire import canonical_values, from_fields, from_route53, to_fields, to_route53
from kubesync.aws.route53.zones import BatchChange
from kubesync.domain.dns.records import AliasTarget, RecordKey, RecordSet, Zone
from kubesync.domain.errors import BatchRefusedError, ZoneDeniedError, ZoneOutcomeUnknownError, ZoneUnavailableError
from kubesync_local.standins.route53.zone.model import Alias, Change, Element, Limits, SetKey, StoredSet
from kubesync_local.standins.route53.zone.names import lets_change
from kubesync_local.standins.route53.zone.zone import Account, HostedZone, RefusedError, Vpc
from simulation.gate import Gate
from simulation.process import Waiters
from simulation.writes import SENT, SWAPPED

_PERSON: Final = "a person"


@dataclass(frozen=True, slots=True)
class Accepted:
    """A batch that took effect; ``session`` is who sent it."""

    zone_id: str
    session: str
    changes: tuple[BatchChange, ...]
    comment: str


@dataclass(frozen=True, slots=True)
class Delayed:
    """A batch whose sender was told nothing, and that arrives later."""

    zone_id: str
    session: str
    changes: tuple[BatchChange, ...]
    comment: str


class MemoryRoute53:
    """The zones of an account, what was accepted in which order, and batches that are still on their way.

    ``denied``: zones that nobody may change for now. ``allowed``: patterns of names that sessions may change, as in the template's
    parameter RecordNames (None: any). ``allowance``: so many changes more are answered, others have to wait (None: all are).
    """

    def __init__(self, limits: Limits | None = None) -> None:
        self.accepted: list[Accepted] = []
        self.delayed: list[Delayed] = []
        self.denied: frozenset[str] = frozenset()
        self.allowed: tuple[str, ...] | None = None
        self.allowance: int | None = None
        self.waiting: list[Waiters] = []
        self._account = Account(limits or Limits())

    def let_through(self, changes: int | None) -> None:
        """So many changes more are answered for now; None: all."""
        self.allowance = changes
        for waiting in self.waiting:
            waiting.wake_all()

    def create(self, zone_id: str, name: str, *, private: bool = False) -> None:
        """Make a hosted zone."""
        self._account.create(name + ".", zone_id, Vpc("eu-west-1", "vpc-1") if private else None, "", zone_id)

    def copy(self) -> MemoryRoute53:
        """A world of its own that stands as this one does now."""
        made = MemoryRoute53(self._account.limits)
        made.accepted, made.delayed, made.denied = list(self.accepted), list(self.delayed), self.denied
        made.allowed = self.allowed
        for zone in self._account.zones():
            twin: HostedZone = copy.copy(zone)
            # Sets at a name are replaced as a whole, never changed in place.
            twin._sets, twin._order = dict(zone._sets), list(zone._order)
            made._account._zones[zone.id] = twin
        return made

    def change(self, zone_id: str, changes: Sequence[BatchChange], comment: str, session: str) -> None:
        """Apply a batch, or raise BatchRefusedError or ZoneUnavailableError."""
        if zone_id in self.denied:
            raise ZoneDeniedError(f"AccessDenied: zone {zone_id} may not be changed")
        names = [to_route53(change.key.name) for change in changes]
        if session != _PERSON and self.allowed is not None and not lets_change(self.allowed, names):
            raise ZoneDeniedError(f"AccessDenied: not authorized to perform ChangeResourceRecordSets on {zone_id}")
        try:
            self._account.change(zone_id, [_change(change) for change in changes])
        except RefusedError as refused:
            if ERROR_BY_CODE.get(refused.code) is BatchRefusedError:
                raise BatchRefusedError(refused.messages) from None
            raise ZoneUnavailableError(f"{refused.code}: {refused.message}") from None
        self.accepted.append(Accepted(zone_id, session, tuple(changes), comment))

    def land(self) -> bool:
        """Let the oldest delayed batch arrive. False: it was refused."""
        late = self.delayed.pop(0)
        try:
            self.change(late.zone_id, late.changes, late.comment, late.session)
        except (BatchRefusedError, ZoneUnavailableError):
            return False
        return True

    def by_hand(self, action: Literal["CREATE", "DELETE"], key: RecordKey, record_set: RecordSet) -> None:
        """A change by somebody else."""
        self.change(key.zone_id, [BatchChange(action, key, record_set)], "", _PERSON)

    def zone(self, zone_id: str) -> Zone:
        try:
            found = self._account.zone(zone_id)
        except RefusedError as refused:
            raise ZoneUnavailableError(refused.message) from None
        return Zone(found.id, from_route53(found.name), found.private)

    def records(self, zone_id: str) -> dict[RecordKey, RecordSet]:
        """Everything in a zone, in listing order."""
        page = self._account.page(zone_id, None, 1_000_000)
        return {_record_key(zone_id, s): _record_set(s) for s in page.sets}

    def stored(self, zone_id: str) -> tuple[StoredSet, ...]:
        """Everything in a zone, as the stand-in keeps it."""
        return self._account.page(zone_id, None, 1_000_000).sets

    def at_name(self, zone_id: str, name: str) -> dict[RecordKey, RecordSet]:
        page = self._account.page(zone_id, SetKey(to_route53(name), ""), 20)
        return {_record_key(zone_id, s): _record_set(s) for s in page.sets if s.key.name == to_route53(name)}

    @property
    def ids(self) -> list[str]:
        return [zone.id for zone in self._account.zones()]


class GatedZones:
    """Implements ``ZoneClient`` for one process."""

    def __init__(self, route53: MemoryRoute53, gate: Gate) -> None:
        self._route53 = route53
        self._gate = gate

    def zone(self, zone_id: str) -> Zone:
        call = self._gate.before("route53", f"GetHostedZone {zone_id}", writes=False)
        found = self._route53.zone(zone_id)
        self._gate.after(call)
        return found

    def change(self, zone_id: str, changes: Sequence[BatchChange], comment: str = "") -> None:
        try:
            kind = SWAPPED if "takes over" in comment else SENT
            what = f"ChangeResourceRecordSets {zone_id} ({len(changes)})"
            self._wait_for_its_turn()
            call = self._gate.before("route53", what, writes=True, kind=kind)
        except LandLater:
            self._route53.delayed.append(Delayed(zone_id, self._gate.name, tuple(changes), comment))
            raise ZoneOutcomeUnknownError("no answer: the batch is on its way") from None
        self._route53.change(zone_id, changes, comment, self._gate.name)
        self._gate.after(call)

    def _wait_for_its_turn(self) -> None:
        route53 = self._route53
        if route53.allowance is None:
            return
        waiting = Waiters(self._gate.process.machine)
        route53.waiting.append(waiting)
        try:
            while route53.allowance == 0:
                waiting.wait("an answer of Route 53", None)
        finally:
            route53.waiting.remove(waiting)
        if route53.allowance is not None:
            route53.allowance -= 1

    def read(self, zone_id: str, name: str) -> dict[RecordKey, RecordSet]:
        call = self._gate.before("route53", f"ListResourceRecordSets {zone_id} {name}", writes=False)
        found = self._route53.at_name(zone_id, name)
        self._gate.after(call)
        return found

    def walk(self, zone_id: str) -> Iterator[tuple[RecordKey, RecordSet]]:
        call = self._gate.before("route53", f"ListResourceRecordSets {zone_id}", writes=False)
        found = self._route53.records(zone_id)
        self._gate.after(call)
        yield from found.items()


def _change(change: BatchChange) -> Change:
    name, wanted = to_route53(change.key.name), change.record_set
    alias = None
    if wanted.alias is not None:
        alias = Alias(wanted.alias.zone_id, to_route53(wanted.alias.name), wanted.alias.evaluate_health)
    key = SetKey(name, change.key.type, change.key.identifier)
    fields = to_fields(wanted.routing, change.key.identifier)
    health_check = fields.pop("HealthCheckId", "")
    fields.pop("SetIdentifier", "")
    routing = tuple(_element(name, value) for name, value in fields.items())
    return Change(change.action, StoredSet(key, wanted.ttl, wanted.values, alias, routing, health_check), name)


def _element(tag: str, value: object) -> Element:
    if isinstance(value, dict):
        return Element(tag, "", tuple(_element(name, inner) for name, inner in value.items()))
    return Element(tag, str(value).lower() if isinstance(value, bool) else str(value))


def _field(element: Element) -> object:
    """As boto3 reads it."""
    if element.children:
        return {inner.tag: _field(inner) for inner in element.children}
    text = element.text
    return text == "true" if text in ("true", "false") else int(text) if element.tag in ("Weight", "Bias") else text


def _record_key(zone_id: str, stored: StoredSet) -> RecordKey:
    return RecordKey(zone_id, from_route53(stored.key.name), stored.key.type, stored.key.identifier)


def _record_set(stored: StoredSet) -> RecordSet:
    alias = stored.alias
    fields = {element.tag: _field(element) for element in stored.routing}
    checked = {"HealthCheckId": stored.health_check_id} if stored.health_check_id else {}
    routing, foreign_form = from_fields(fields | checked)
    return RecordSet(
        stored.ttl,
        canonical_values(stored.key.type, stored.values),
        None if alias is None else AliasTarget(alias.zone_id, from_route53(alias.name), alias.evaluate_health),
        foreign_form=foreign_form,
        routing=routing,
    )
