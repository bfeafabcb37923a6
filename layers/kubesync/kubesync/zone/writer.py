"""One batch of a zone: announced, sent, and sent again unchanged until its outcome is known.

    units ── inflight item ── batch ──┬── landed ── the clusters close their keys (``actor``)
                                      ├── refused ── read the journal ── landed, moved, or culprits and groups to send again
                                      ├── denied ── the journal alone, in a batch without units ── names are denied, or the zone
                                      └── unknown or throttled ── the same batch, unchanged, before anything else

The journal says what a refusal means:

    journal                              meaning
    -------                              -------
    holds this batch                     an earlier try had landed
    not the one we knew                  somebody moved it: the same units again, with the journal as it is
    the one we knew                      something else in the zone is not as known: find the culprits
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace

from kubesync.aws.route53.journal import Journal, journal_swap
from kubesync.aws.route53.zones import BatchChange
from kubesync.domain.batches import Unit, culprits, halves, says_zone_is_full, together
from kubesync.domain.dns.records import RecordSet
from kubesync.domain.errors import BatchRefusedError, ZoneDeniedError, ZoneGoneError, ZoneOutcomeUnknownError
from kubesync.zone.journal import ZoneJournal
from kubesync.zone.ports import ZonePorts
from kubesync.zone.progress import ZoneReport


@dataclass(frozen=True, slots=True)
class Sent:
    """A batch that is under way. It is repeated unchanged until it has landed or been refused.

    ``denied``: units of a batch that IAM denied, and ``why``. This batch then has none: it shows whether the journal may change.
    """

    batch: str
    units: tuple[Unit, ...]
    changes: tuple[BatchChange, ...]
    known: Journal | None
    following: Journal
    denied: tuple[Unit, ...] = ()
    why: str = ""


@dataclass(frozen=True, slots=True)
class Isolation:
    """A refused batch taken apart.

    ``zone_is_full``: what Route 53 said. Units that add sets are then in no other field: they wait for room.
    ``not_allowed``: units whose names IAM denies, each with what it said.
    """

    # Units at fault, each with the message about it; empty: what it goes with was named.
    culprits: tuple[tuple[Unit, str], ...] = ()
    again: tuple[Sequence[Unit], ...] = ()  # groups of units to be sent again at once
    zone_is_full: str = ""
    not_allowed: tuple[tuple[Unit, str], ...] = ()


class BatchWriter:
    """Sends the batches of one zone. ``settled``: see ``ZoneActor``. ``sent``: the batch under way."""

    def __init__(self, ports: ZonePorts, journal: ZoneJournal, report: ZoneReport, *, settled: bool) -> None:
        self.settled = settled
        self.sent: Sent | None = None
        self._ports = ports
        self._journal = journal
        self._report = report
        self._in_doubt = False

    @property
    def idle(self) -> bool:
        return self.settled and self.sent is None

    def unsettle(self) -> None:
        """What is under way is not certain any more: the zone settles, from the inflight item as it stands, before it sends anything."""
        self.settled, self.sent = False, None
        self._journal.reread_inflight()

    def start(self, units: Sequence[Unit], denied: tuple[Unit, ...] = (), why: str = "") -> None:
        """Announce a batch of these units, as far as one inflight item can name their clusters. The rest: see ``Sent``."""
        units = self._journal.of_few_clusters(units)
        batch = self._ports.scheduler.token_hex(16)
        known, following = self._journal.known_journal(), self._journal.following(batch)
        swap = journal_swap(self._journal.journal_key(), known, following)
        self._journal.announce(batch, units)
        self.sent = Sent(batch, units, (*swap, *_batch_changes(units)), known, following, denied, why)
        self._in_doubt = False

    def send(self, sent: Sent) -> Isolation | None:
        """Send the batch under way. None: it has landed. Else some units have not, and none of them is under way any more.

        Raises:
            ZoneOutcomeUnknownError, ZoneThrottledError: it is still under way.
            ZoneDeniedError: the zone is denied. A batch without units is still under way.
        """
        self._ports.fenced_writer.check()
        try:
            self._ports.client.change(self._journal.zone_id, sent.changes, f"kubesync {sent.batch}")
        except ZoneOutcomeUnknownError:
            self._in_doubt = True
            raise
        except ZoneGoneError:
            if not self._in_doubt:
                # Zones do not come back: whoever waits for its outcome would wait for ever.
                self._journal.clear()
                self.sent = None
            raise
        except ZoneDeniedError as denied:
            self._report.refused += 1
            return self._denied(sent, denied)
        except BatchRefusedError as refused:
            self._report.refused += 1
            return self._refused(sent, refused.messages)
        return self._landed(sent)

    def _landed(self, sent: Sent) -> Isolation | None:
        self._journal.left_behind(sent.following)
        self.sent = None
        self._report.batches += 1
        changes = sum(len(unit.changes) for unit in sent.units)
        self._report.changes += changes
        each = [change for unit in sent.units for change in unit.changes]
        made = {change.key.name for change in each if change.after is not None}
        self._report.deleted += sum(change.key.name not in made for change in each)
        self._ports.progress("batch", {"zone": self._journal.zone_id, "changes": changes})
        return _names_denied(sent)

    def _denied(self, sent: Sent, error: ZoneDeniedError) -> Isolation:
        """IAM denies a request as a whole, and does not say whether it denies the zone or one of the names.

        what was denied                  what happens
        ---------------                  ------------
        the journal alone                the zone is blocked; the journal alone is tried again later
        units, an earlier try in doubt   settle: what has landed is closed, and what may yet land is shut out
        units                            none was applied: the journal is tried alone. If it is not denied, names are
        """
        if not sent.units:
            self.sent = replace(sent, denied=())  # they may be allowed by then
            raise error
        if self._in_doubt:
            self.sent, self.settled = None, False
            return Isolation(again=(sent.units,))
        self.sent = None  # never again: even an announcement that fails may replace what the item says
        self.start((), sent.units, str(error))
        return Isolation()

    def _refused(self, sent: Sent, messages: Sequence[str]) -> Isolation | None:
        journal = self._journal.read_journal()
        if journal is not None and journal.batch == sent.batch:
            return self._landed(sent)
        self.sent = None
        if _record_set(journal) != _record_set(sent.known):
            return Isolation(again=(sent.units,))
        if self._in_doubt:
            # An earlier try of it has no answer and may yet land: shut it out before anything is decided by this refusal.
            self.settled = False
            return Isolation(again=(sent.units,))
        return isolate(sent.units, messages) if sent.units else _names_denied(sent) or Isolation()


def _names_denied(sent: Sent) -> Isolation | None:
    """IAM lets the journal change: what it denied before is a name of ``denied``. None: it denied nothing."""
    if not sent.denied:
        return None
    found = isolate(sent.denied, (f"IAM does not allow this name: {sent.why}",))
    return replace(found, culprits=(), not_allowed=tuple((unit, why or sent.why) for unit, why in found.culprits))


def isolate(units: Sequence[Unit], messages: Sequence[str]) -> Isolation:
    """Keep back what is at fault, and only that (I4). The cluster judges it (I3).

    messages                     what happens
    --------                     ------------
    the zone is full             what adds sets waits (``FullZone``), the rest goes at once
    point at some units          those are at fault, with what goes together with them; the rest goes at once
    explain nothing, one group   it is at fault
    explain nothing, several     two halves: O(k log n) batches for k culprits among n
    """
    groups = together(units)
    if says_zone_is_full(messages):
        rest = [unit for group in groups if sum(each.growth for each in group) <= 0 for unit in group]
        if len(rest) < len(units):
            return Isolation(again=(rest,) if rest else (), zone_is_full=messages[0])
    named = culprits(units, messages)
    if not named and len(groups) > 1:
        return Isolation((), halves(groups))
    if not named:
        named = dict.fromkeys(range(len(units)), messages[0] if messages else "refused without a message")
    said = {units[index]: message for index, message in named.items()}
    guilty, rest = list[Unit](), list[Unit]()
    for group in groups:
        (guilty if any(unit in said for unit in group) else rest).extend(group)
    return Isolation(tuple((unit, said.get(unit, "")) for unit in guilty), (rest,) if rest else ())


def _batch_changes(units: Iterable[Unit]) -> list[BatchChange]:
    """DELETE of the known value, CREATE of the new one; deletions first, so that types can change places.

    Route 53 takes the changes in their order: a set that an alias of the zone leads to is created before it, and deleted after it.
    """
    deletes: list[BatchChange] = []
    creates: list[BatchChange] = []
    for unit in units:
        for change in unit.changes:
            if change.before is not None:
                deletes.append(BatchChange("DELETE", change.key, change.before))
            if change.after is not None:
                creates.append(BatchChange("CREATE", change.key, change.after))
    return [*sorted(deletes, key=_depths(deletes), reverse=True), *sorted(creates, key=_depths(creates))]


def _depths(changes: Iterable[BatchChange]) -> Callable[[BatchChange], int]:
    """How many aliases of the zone, among these, lead one to another from the set of a change on."""
    found = ((each.key, each.record_set.alias) for each in changes)
    targets = {(key.name, key.type): alias.name for key, alias in found if alias and alias.zone_id == key.zone_id}

    def depth(change: BatchChange) -> int:
        name, hops = change.key.name, 0
        while hops <= len(targets) and (target := targets.get((name, change.key.type))) is not None:
            name, hops = target, hops + 1
        return hops

    return depth


def _record_set(journal: Journal | None) -> RecordSet | None:
    return None if journal is None else journal.record_set
