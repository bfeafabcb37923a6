"""The state of the stand-in: hosted zones, their sets in listing order, and change ids."""

import itertools
import secrets
import threading
from bisect import bisect_left, insort
from collections.abc import Sequence
from dataclasses import dataclass

from kubesync_local.standins.route53.zone import rules
from kubesync_local.standins.route53.zone.model import Change, Limits, Refusal, SetKey, StoredSet
from kubesync_local.standins.route53.zone.names import listing_form, sort_key

_ID_ALPHABET = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ"


class RefusedError(Exception):
    """An operation is refused with an error of Route 53's: HTTP status, code and message."""

    def __init__(self, status: int, code: str, message: str, messages: tuple[str, ...] = ()) -> None:
        super().__init__(message)
        self.status = status
        self.code = code
        self.message = message
        self.messages = messages


@dataclass(frozen=True, slots=True)
class Vpc:
    """A VPC that a private zone is associated with."""

    region: str
    id: str


@dataclass(frozen=True, slots=True)
class Page:
    """A page of a listing; ``following`` is where the next page starts, None at the end."""

    sets: tuple[StoredSet, ...]
    following: SetKey | None


class HostedZone:
    """One zone. Not thread-safe: the account's lock is held around every call."""

    def __init__(self, zone_id: str, name: str, caller_reference: str, vpc: Vpc | None, comment: str) -> None:
        self.id = zone_id
        self.name = name
        self.caller_reference = caller_reference
        self.vpc = vpc
        self.comment = comment
        number = int.from_bytes(zone_id.encode(), "big") % 2_000
        # https://docs.aws.amazon.com/Route53/latest/DeveloperGuide/SOA-NSrecords.html: every zone gets them.
        self.name_servers = (
            tuple(f"ns-{number + i}.awsdns-{i:02}.{tld}" for i, tld in enumerate(("com", "net", "org", "co.uk")))
            if vpc is None
            else (f"ns-{number}.awsdns-00.co.uk",)
        )
        soa = f"{self.name_servers[0]}. awsdns-hostmaster.amazon.com. 1 7200 900 1209600 86400"
        name_servers = tuple(f"{server}." for server in self.name_servers)
        self._sets: dict[str, dict[tuple[str, str], StoredSet]] = {
            name: {
                ("NS", ""): StoredSet(SetKey(name, "NS"), 172_800, name_servers),
                ("SOA", ""): StoredSet(SetKey(name, "SOA"), 900, (soa,)),
            }
        }
        self._order: list[tuple[bytes, str]] = [(sort_key(name), name)]

    @property
    def private(self) -> bool:
        return self.vpc is not None

    @property
    def size(self) -> int:
        """Number of record sets, the zone's own NS and SOA included."""
        return sum(map(len, self._sets.values()))

    def change(self, changes: Sequence[Change], limits: Limits) -> Refusal | None:
        """Apply a batch as a whole, or say why not."""
        outcome = rules.apply(
            self._sets, changes, zone_id=self.id, zone_name=self.name, limits=limits, private=self.private
        )
        if isinstance(outcome, Refusal):
            return outcome
        for name, sets in outcome.items():
            known = name in self._sets
            if sets:
                self._sets[name] = sets
                if not known:
                    insort(self._order, (sort_key(name), name))
            elif known:
                del self._sets[name]
                del self._order[bisect_left(self._order, (sort_key(name), name))]
        return None

    def page(self, start: SetKey | None, size: int) -> Page:
        """``size`` sets in listing order from ``start`` (by name, then type, then identifier), inclusive."""
        found: list[StoredSet] = []
        first = 0 if start is None else bisect_left(self._order, (sort_key(start.name), ""))
        for _, name in itertools.islice(self._order, first, None):
            for key in sorted(self._sets[name]):
                if start is not None and name == start.name and key < (start.type, start.identifier):
                    continue
                if len(found) == size:
                    return Page(tuple(found), self._sets[name][key].key)
                found.append(self._sets[name][key])
        return Page(tuple(found), None)


class Account:
    """All zones and change ids. Thread-safe."""

    def __init__(self, limits: Limits) -> None:
        self.limits = limits
        self._lock = threading.Lock()
        self._zones: dict[str, HostedZone] = {}
        self._changes: set[str] = set()

    def create(self, name: str, caller_reference: str, vpc: Vpc | None, comment: str, zone_id: str = "") -> HostedZone:
        """Make a zone.

        https://docs.aws.amazon.com/Route53/latest/APIReference/API_CreateHostedZone.html

        Raises:
            RefusedError: the caller reference was used before, or the VPC has a zone of that name.
        """
        with self._lock:
            if any(zone.caller_reference == caller_reference for zone in self._zones.values()):
                message = (
                    f"A hosted zone has already been created with the specified caller reference {caller_reference}"
                )
                raise RefusedError(409, "HostedZoneAlreadyExists", message)
            for zone in self._zones.values():
                if vpc is not None and (zone.vpc, zone.name) == (vpc, name):
                    message = (
                        f"The VPC {vpc.id} in region {vpc.region} has already been associated with the hosted zone "
                        f"{zone.id} with the same domain name."
                    )
                    raise RefusedError(400, "ConflictingDomainExists", message)
            made = HostedZone(zone_id or "Z" + _random_id(), name, caller_reference, vpc, comment)
            self._zones[made.id] = made
            return made

    def zone(self, zone_id: str) -> HostedZone:
        """The zone. Raises RefusedError if there is none."""
        zone = self._zones.get(zone_id)
        if zone is None:
            raise RefusedError(404, "NoSuchHostedZone", f"No hosted zone found with ID: {zone_id}")
        return zone

    def zones(self) -> list[HostedZone]:
        """Every zone, by id."""
        with self._lock:
            return [self._zones[zone_id] for zone_id in sorted(self._zones)]

    def delete(self, zone_id: str) -> str:
        """Delete an empty zone; returns the change id. Raises RefusedError if it holds more than its own NS and SOA."""
        with self._lock:
            # https://docs.aws.amazon.com/Route53/latest/APIReference/API_DeleteHostedZone.html
            if self.zone(zone_id).size > 2:
                message = (
                    "The specified hosted zone contains non-required resource record sets and so cannot be deleted."
                )
                raise RefusedError(400, "HostedZoneNotEmpty", message)
            del self._zones[zone_id]
            return self._new_change()

    def change(self, zone_id: str, changes: Sequence[Change]) -> str:
        """Apply a batch; returns the change id. Raises RefusedError if it is refused; then nothing is applied."""
        with self._lock:
            refusal = self.zone(zone_id).change(changes, self.limits)
            if refusal is None:
                return self._new_change()
        joined = ", ".join(refusal.messages)
        # Route 53 writes the list of messages of a refused batch in brackets.
        message = f"[{joined}]" if refusal.code == "InvalidChangeBatch" else joined
        raise RefusedError(404 if refusal.code == "NoSuchHealthCheck" else 400, refusal.code, message, refusal.messages)

    def page(self, zone_id: str, start: SetKey | None, size: int) -> Page:
        """A page of the zone's sets."""
        with self._lock:
            return self.zone(zone_id).page(start, size)

    def has_change(self, change_id: str) -> bool:
        """Whether a change of that id was accepted."""
        return change_id in self._changes

    def new_change(self) -> str:
        """An id for an accepted change."""
        with self._lock:
            return self._new_change()

    def _new_change(self) -> str:
        change_id = "C" + _random_id()
        self._changes.add(change_id)
        return change_id


def _random_id() -> str:
    return "".join(secrets.choice(_ID_ALPHABET) for _ in range(20))


def zone_name(written: str) -> str:
    """A zone's name in listing form. Raises NameRefusedError."""
    return listing_form(written)
