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

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Final

from kubesync.aws.route53.journal import Journal, journal_swap
from kubesync.aws.route53.zones import BatchChange
from kubesync.domain.batches import Unit, culprits, halves, says_zone_is_full, together
from kubesync.domain.dns.records import RecordSet
from kubesync.domain.errors import BatchRefusedError, ZoneDeniedError, ZoneGoneError, ZoneOutcomeUnknownError
from kubesync.zone.journal import ZoneJournal
from kubesync.zone.ports import ZonePorts
from kubesync.zone.progress import ZoneReport
from kubesync.zone.reader import KnownSets, ZoneReader

_IN_THE_WAY: Final = "a set stands in the way"


@dataclass(frozen=True, slots=True)
class SentBatch:
    """A batch that is under way. It is repeated unchanged until it has landed or been refused. ``batch``: its id, which its journal holds.

    ``denied``: units of an earlier batch that IAM denied, and ``why``. This batch then swaps the journal only: it shows whether IAM denies
    the zone or only names. ``known``, ``following``: the journal that the batch deletes (None: there is none), and that it creates.
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
    """A refused batch, split into units at fault (*culprits*) and units to send again.

    ``zone_is_full``: what Route 53 said; empty: it is not. Units that add sets are then in no other field: they wait for room.
    ``not_allowed``: units whose names IAM denies, each with what it said.
    """

    # Units at fault, each with the message about it. Empty: the message is about a unit that must go together with this one.
    culprits: tuple[tuple[Unit, str], ...] = ()
    again: tuple[Sequence[Unit], ...] = ()  # groups of units to be sent again at once
    zone_is_full: str = ""
    not_allowed: tuple[tuple[Unit, str], ...] = ()


class BatchWriter:
    """Sends the batches of one zone. ``settled``: see ``ZoneActor``. ``sent``: the batch under way. None: there is none.

    ``culprits``: units at fault that the clusters have not been asked to judge yet, as in ``Isolation``. ``known``: what stands in the zone.
    """

    def __init__(self, ports: ZonePorts, journal: ZoneJournal, report: ZoneReport, *, settled: bool) -> None:
        self.settled = settled
        self.sent: SentBatch | None = None
        self.culprits: tuple[tuple[Unit, str], ...] = ()
        self.known = KnownSets()
        self._reader = ZoneReader(ports.client, journal.zone_id, ports.scheduler)
        self._ports = ports
        self._journal = journal
        self._report = report
        self._in_doubt = False  # a try of ``sent`` got no answer: it may have landed, or may yet land

    @property
    def idle(self) -> bool:
        """Whether the zone is settled and no batch is under way."""
        return self.settled and self.sent is None

    def unsettle(self) -> None:
        """Forget the batch under way, because its outcome is not certain. The zone must settle from the inflight item before it sends again."""
        self.settled, self.sent = False, None
        self._journal.reread_inflight()

    def begin(self, units: Sequence[Unit], is_inherited: Callable[[Unit], bool]) -> None:
        """Start a batch of these units, without those in whose way a set stands: Route 53 would refuse the batch because of them (ADR 0076).
        They become ``culprits`` instead, as if it had.

        Raises what the client raises when it reads.

        Args:
            is_inherited: whether no event of this session made a unit. What stands at the name of such a unit is read first, if nothing is
                known of it.
        """
        now = self._ports.scheduler.monotonic()
        # 1. Read what nobody has looked at in this session.
        if missing := self.known.names_to_read(unit for unit in units if is_inherited(unit)):
            self.known.record_read(self._reader.read_all(missing))
        blocked = self.known.blocked(units)
        if blocked:  # 2. Read again what is in the way: a person may have removed it.
            self.known.record_read(self._reader.read_all({unit.name for unit in blocked}, now))
            blocked = self.known.blocked(units)
        # 3. The clusters will judge what is still blocked (``culprits``). It is left out of the batch, and so is what must wait with it.
        self.culprits = tuple((unit, _IN_THE_WAY if at_fault else "") for unit, at_fault in blocked.items())
        left_out = (blocked.keys() | self.known.waiting_with(blocked, units)) if blocked else ()
        if rest := [unit for unit in units if unit not in left_out]:
            self.start(rest)

    def start(self, units: Sequence[Unit], denied: tuple[Unit, ...] = (), why: str = "") -> None:
        """Announce a batch of these units durably; ``send`` sends it. Leaves out units of too many clusters (``ZoneJournal.limit_clusters``).

        ``denied`` and ``why``: see ``SentBatch``.
        """
        units = self._journal.limit_clusters(units)
        batch = self._ports.scheduler.token_hex(16)
        known, following = self._journal.known_journal(), self._journal.next_journal(batch)
        swap = journal_swap(self._journal.journal_key(), known, following)
        self._journal.announce(batch, units)
        self.sent = SentBatch(batch, units, (*swap, *_batch_changes(units)), known, following, denied, why)
        self._in_doubt = False

    def send(self, sent: SentBatch) -> Isolation | None:
        """Send the batch under way.

        Returns:
            None: it has landed. Else which units have not, and what to do with them. No batch with them is under way any more.

        Raises:
            ZoneOutcomeUnknownError, ZoneThrottledError: the batch is still under way.
            ZoneGoneError: there is no such zone. The batch is dropped, unless an earlier try may have landed.
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
            return self._handle_denied(sent, denied)
        except BatchRefusedError as refused:
            self._report.refused += 1
            return self._handle_refused(sent, refused.messages)
        return self._record_landed(sent)

    def _record_landed(self, sent: SentBatch) -> Isolation | None:
        """Record that a batch has landed: in the journal, in what is known of names, and in the report.

        Returns None, except after a batch of the journal alone, which was sent because IAM had denied an earlier batch (``SentBatch.denied``).
        That it has landed shows that IAM denies names, not the zone: then returns what to do with the units of the earlier batch.
        """
        self._journal.record_swapped(sent.following)
        self.known.record_landed(sent.units)
        self.sent = None
        self._report.batches += 1
        changes = sum(len(unit.changes) for unit in sent.units)
        self._report.changes += changes
        # Where the batch also creates a set, a deletion is half of a change, and does not count as one.
        made = {unit.name for unit in sent.units if unit.creates}
        self._report.deleted += sum(len(unit.changes) for unit in sent.units if unit.name not in made)
        self._ports.progress("batch", {"zone": self._journal.zone_id, "changes": changes})
        return _isolate_denied_names(sent)

    def _handle_denied(self, sent: SentBatch, error: ZoneDeniedError) -> Isolation:
        """Handle a batch that IAM denied. IAM denies it as a whole, and does not say whether it denies the zone or one of the names.

        what was denied                  what happens
        ---------------                  ------------
        the journal alone                the zone is blocked; the journal alone is tried again later
        units, an earlier try in doubt   settle: what has landed is closed, and what may yet land is shut out
        units                            none was applied: the journal is tried alone. If it is not denied, names are
        """
        if not sent.units:
            self.sent = replace(sent, denied=())  # the names may be allowed once the zone is
            raise error
        if self._in_doubt:
            self.sent, self.settled = None, False
            return Isolation(again=(sent.units,))
        # The denied batch is never sent again. Forget it before ``start``, which may fail after it has replaced the batch in the inflight item.
        self.sent = None
        self.start((), sent.units, str(error))
        return Isolation()

    def _handle_refused(self, sent: SentBatch, messages: Sequence[str]) -> Isolation | None:
        """Read the journal to learn what a refusal means, and return what to do with the units (see the table at the head of the file).

        None: an earlier try of the batch has landed.
        """
        journal = self._journal.read_journal()
        if journal is not None and journal.batch == sent.batch:
            return self._record_landed(sent)
        self.sent = None
        if _record_set(journal) != _record_set(sent.known):
            return Isolation(again=(sent.units,))
        if self._in_doubt:
            # An earlier try of it has no answer and may yet land: shut it out before anything is decided by this refusal.
            self.settled = False
            return Isolation(again=(sent.units,))
        if sent.units:
            return isolate(sent.units, messages)
        # The journal alone was refused, but not denied: so here, too, IAM denies names and not the zone.
        return _isolate_denied_names(sent) or Isolation()


def _isolate_denied_names(sent: SentBatch) -> Isolation | None:
    """Split the units that IAM denied in an earlier batch (``SentBatch.denied``) as ``isolate`` does. None: this batch has no such units.

    Call it once IAM has let the journal alone pass: so it denies names, not the zone. Units at fault are in ``not_allowed``, not in
    ``culprits``: their clusters need not find out why.
    """
    if not sent.denied:
        return None
    found = isolate(sent.denied, (f"IAM does not allow this name: {sent.why}",))
    return replace(found, culprits=(), not_allowed=tuple((unit, why or sent.why) for unit, why in found.culprits))


def isolate(units: Sequence[Unit], messages: Sequence[str]) -> Isolation:
    """Split the units of a refused batch: units at fault, which their clusters judge (I3), and all others, which are sent again (I4).

    messages                     what happens
    --------                     ------------
    the zone is full             what adds sets waits (``FullZone``), the rest goes at once
    point at some units          those are at fault, with what goes together with them; the rest goes at once
    point at no unit, one group  it is at fault
    point at no unit, several    two halves: O(k log n) batches for k culprits among n
    """
    groups = together(units)
    if says_zone_is_full(messages):
        rest = [unit for group in groups if sum(each.growth for each in group) <= 0 for unit in group]
        if len(rest) < len(units):  # else no unit adds sets: the message does not help to find who is at fault
            return Isolation(again=(rest,) if rest else (), zone_is_full=messages[0])
    said = culprits(units, messages)
    if not said and len(groups) > 1:
        return Isolation((), halves(groups))
    if not said:
        said = dict.fromkeys(units, messages[0] if messages else "refused without a message")
    guilty, rest = list[Unit](), list[Unit]()
    for group in groups:
        (guilty if any(unit in said for unit in group) else rest).extend(group)
    return Isolation(tuple((unit, said.get(unit, "")) for unit in guilty), (rest,) if rest else ())


def _batch_changes(units: Sequence[Unit]) -> list[BatchChange]:
    """Return the changes of a batch: DELETE of each known value, CREATE of each new one. All deletions first, so that types can change places.

    Route 53 applies the changes in order. So the target of an alias is created before the alias, and deleted after it.
    """
    deletes = [BatchChange("DELETE", *known) for unit in units for known in unit.deletes]
    creates = [BatchChange("CREATE", *wanted) for unit in units for wanted in unit.creates]
    return [*sorted(deletes, key=_depths(deletes), reverse=True), *sorted(creates, key=_depths(creates))]


def _depths(changes: Iterable[BatchChange]) -> Callable[[BatchChange], int]:
    """Return a function that says of a change how deep it is: how many aliases among these changes must be followed, one after another, from
    its record set. 0: it is no alias, or its target is not among them. ``_batch_changes`` sorts by it.
    """
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
