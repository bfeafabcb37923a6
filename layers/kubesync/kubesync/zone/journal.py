"""The journal and the inflight item of one hosted zone, and how they are settled after an unclean end (I2).

What the journal in the zone means for a master:

    journal                              meaning
    -------                              -------
    none                                 somebody deleted it: it is made anew by the next batch, reported
    of another owner, unreadable, or     nothing is written to this zone; reported
    a set in its place (a CNAME, say)
    ours, newer epoch, or one that our   not master any more; or, with the lease truly ours, tables were lost or
    tables cannot know                   restored: nothing is written, reported
    ours, else                           what the next batch swaps

The item of a closed batch stays until the next announcement replaces it. It is cleared before ``applied`` may change without a batch,
before a cluster is forgotten, and before the session ends: a successor that settles would close its units once more.

A cluster that does not close its units in time *owes* them. Every item that is written from then on carries them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import islice
from typing import Final

from kubesync.aws.fencing.writer import StaleStateError
from kubesync.aws.route53.journal import Journal, journal_record_key, journal_swap, make_journal, read_journal
from kubesync.aws.tables.control.inflight import Inflight, LandedUnits
from kubesync.domain.batches import BatchLimits, Unit, together
from kubesync.domain.dns.records import RecordKey, Zone
from kubesync.domain.errors import BatchRefusedError, ZoneError
from kubesync.log import logger
from kubesync.zone.ports import ZonePorts

# Of one batch: a transaction holds a fence check for each, and the inflight item with all its slices.
_MAX_CLUSTERS: Final = 80
_SWAP_ELEMENTS: Final = 2  # DELETE of the known journal, CREATE of the next
_ANY_BATCH: Final = "0" * 32  # as long as a batch's id


class ZoneBlockedError(ZoneError):
    """Nothing may be written to this zone; the message says why and what to do."""


class ZoneJournal:
    """Journal and inflight item of one zone, as this master last read or wrote them.

    ``served``: clusters that have published here in this session. An announcement checks their fences.
    ``owed``: by cluster, landed units that it owes. What is written next holds them.
    ``torn``: an inflight item was, and nobody has compared the zone since.
    """

    def __init__(self, zone_id: str, ports: ZonePorts, zone: Zone | None) -> None:
        self.zone_id = zone_id
        self.remark = ""
        self.served: set[str] = set()
        self.owed: dict[str, LandedUnits] = {}
        self.torn = False
        self._ports = ports
        self._zone = zone
        self._journal: Journal | None = None
        self._journal_read = False
        self._inflight: Inflight | None = None
        self._inflight_read = False
        self._written = False

    # --- journal ---

    def journal_key(self) -> RecordKey:
        if self._zone is None:
            self._zone = self._ports.client.zone(self.zone_id)
        return journal_record_key(self._zone, self._ports.deployment, self._ports.shard)

    def following(self, batch: str) -> Journal:
        """The journal that a batch of ours leaves behind."""
        return make_journal(self._ports.deployment, self._ports.fenced_writer.epoch, batch)

    def known_journal(self) -> Journal | None:
        """The journal as read or written last."""
        return self._journal if self._journal_read else self.read_journal()

    def left_behind(self, journal: Journal) -> None:
        self._journal, self._journal_read, self._written = journal, True, True

    def read_journal(self) -> Journal | None:
        """The journal as it stands, if this master may go on from it (see the table above).

        Raises:
            ZoneBlockedError: it may not.
            NotMasterError: a later master wrote it.
            StaleStateError: another master wrote to the zone since this one looked: settle it.
        """
        journal = read_journal(self._ports.client, self.journal_key())
        if journal is not None:
            if journal.owner != self._ports.deployment:
                raise ZoneBlockedError(
                    f"the journal {self.journal_key().name} of zone {self.zone_id} belongs to {journal.owner}: "
                    "give this deployment another KUBESYNC_DEPLOYMENT"
                    if journal.owner
                    else f"{journal.label} stands in zone {self.zone_id} and is not ours: no journal can stand there. "
                    "Remove it, or give this deployment another KUBESYNC_DEPLOYMENT"
                )
            if self._beyond_us(journal):
                self._ports.truly_master()
                raise ZoneBlockedError(
                    f"the journal of zone {self.zone_id} (epoch {journal.epoch}) is not one that our tables "
                    f"(epoch {self._ports.fenced_writer.epoch}) can know: were they lost or restored? see `kubesync recover`"
                )
        elif self._journal is not None or self._landed_once():
            self.remark = f"the journal of zone {self.zone_id} was missing and is made anew"
            logger.warning("the journal of a zone was missing and is made anew", zone=self.zone_id)
        self._journal, self._journal_read = journal, True
        return journal

    def _landed_once(self) -> bool:
        """Only an item of a batch that has landed, or was settled, is cleared."""
        inflight = self.known_inflight()
        return inflight is not None and not inflight.batch

    def _beyond_us(self, journal: Journal) -> bool:
        """Whether a journal of ours tells of writes that our tables do not: a later epoch, or one that no inflight item announced.

        Our own epoch counts as later until this master itself has written: an epoch is drawn once, unless the counter went back.
        """
        epoch = self._ports.fenced_writer.epoch
        if journal.epoch > epoch or (journal.epoch == epoch and not self._written):
            return True
        if self._announced(journal):
            return False
        self.reread_inflight()
        if self._announced(journal):
            # A master that was paused has written it since: what it sent has to be settled first.
            raise StaleStateError(())
        return True

    def _announced(self, journal: Journal) -> bool:
        inflight = self.known_inflight()
        return inflight is not None and inflight.knows(journal.epoch)

    def room(self) -> BatchLimits:
        """What a batch may hold besides the journal swap."""
        limits = self._ports.limits
        journals = [self.known_journal(), self.following(_ANY_BATCH)]
        characters = sum(journal.record_set.characters for journal in journals if journal is not None)
        return BatchLimits(limits.elements - _SWAP_ELEMENTS, limits.characters - characters)

    @staticmethod
    def of_few_clusters(units: Sequence[Unit]) -> tuple[Unit, ...]:
        """As many of these units as one inflight item can be written for; the others go with the next batch."""
        first = set(islice(dict.fromkeys(unit.key.cluster for unit in units), _MAX_CLUSTERS))
        left = {unit for unit in units if unit.key.cluster not in first}
        if left:  # with all that goes together with them
            left = {unit for group in together(units) if not left.isdisjoint(group) for unit in group}
        return tuple(unit for unit in units if unit not in left)

    # --- inflight item ---

    def known_inflight(self) -> Inflight | None:
        """What the table says is under way; None where this deployment never wrote to the zone."""
        if not self._inflight_read:
            self._inflight = self._ports.inflight.read(self.zone_id)
            if self._inflight is not None:
                self.owed = {**self._inflight.owed, **self.owed}
                self.torn |= self._inflight.torn
            self._inflight_read = True
        return self._inflight

    def reread_inflight(self) -> None:
        """Read the inflight item again before the next write: a condition failed."""
        self._inflight_read = False

    def announce(self, batch: str, units: tuple[Unit, ...]) -> None:
        """Say durably what is about to be sent, before it is (ADR 0002, step 2)."""
        self._write(Inflight(batch, self._ports.fenced_writer.epoch, units))

    @property
    def names_landed(self) -> bool:
        """Whether the inflight item names a batch that has landed: the last one that the journal names."""
        inflight, journal = self._inflight, self._journal
        return inflight is not None and journal is not None and bool(inflight.batch) and inflight.batch == journal.batch

    @property
    def holds_landed(self) -> bool:
        """Whether a successor that settles would close units of the inflight item."""
        return self.names_landed or (self._inflight is not None and bool(self._inflight.owed))

    def clear(self) -> None:
        """Say durably that nothing is under way: clusters have closed, or owe, or what was announced never lands."""
        inflight = self.known_inflight()
        if inflight is not None and (inflight.batch or inflight.owed != self.owed):
            self._write(replace(inflight, batch="", units=()))

    def drop_units_of(self, cluster: str) -> None:
        """The cluster is being removed, and the zone is gone: nobody will ever know what became of its units. Drop them durably.

        The item keeps the batch's name while it holds units of others.
        """
        inflight = self.known_inflight()
        if inflight is not None:
            self.owed.pop(cluster, None)
            units = tuple(unit for unit in inflight.units if unit.key.cluster != cluster)
            self._write(replace(inflight, batch=inflight.batch if units else "", units=units))

    def _write(self, inflight: Inflight) -> None:
        fenced_writer = self._ports.fenced_writer
        token = fenced_writer.token()
        before = self.known_inflight()
        after, actions = self._ports.inflight.put(self.zone_id, before, replace(inflight, owed=dict(self.owed)), token)
        self._written = True
        # Fences of clusters whose keys may land, else the shard's. A write of a cluster that owes may hang, and its fence with it.
        landing = {unit.key.cluster for unit in inflight.units} & self.served - self.owed.keys()
        fenced_writer.run(sorted(landing), actions, token)
        self._inflight = after

    # --- after an unclean end ---

    def landed_before(self) -> LandedUnits | None:
        """The batch that was under way, if the journal proves that it has landed. ``owed`` are then those of the item.

        It must be closed, or owed by an item, *before* the journal is swapped: afterwards the proof is gone.
        """
        inflight = self.known_inflight()
        if inflight is None:
            return None
        if inflight.epoch > self._ports.fenced_writer.epoch:
            # A successor that found no item need not swap the journal: it would not shut this master out of the zone (I2).
            self._ports.truly_master()
            raise ZoneBlockedError(
                f"what is in flight in zone {self.zone_id} has epoch {inflight.epoch}, above ours "
                f"({self._ports.fenced_writer.epoch}): were tables lost or restored? see `kubesync recover`"
            )
        journal = self.read_journal()
        if inflight.batch and journal is not None and journal.batch == inflight.batch:
            return LandedUnits(inflight.batch, inflight.units)
        return None

    def shut_out(self) -> bool:
        """Swap the journal, so that no late batch can land. Call ``landed_before`` first.

        Returns:
            False: somebody's late batch came first. Settle again from what stands now.
        """
        if self.known_inflight() is None:
            return True  # nothing was ever sent: the inflight item is written first
        self._announce_swap()
        fresh = self.following(self._ports.scheduler.token_hex(16))
        self._ports.fenced_writer.check()
        swap = journal_swap(self.journal_key(), self._journal, fresh)
        self._written = True
        try:
            self._ports.client.change(self.zone_id, swap, "kubesync takes over")
        except BatchRefusedError:
            seen = self.read_journal()
            if seen is None or seen.batch != fresh.batch:
                return False
        self.left_behind(fresh)
        self.clear()
        return True

    def _announce_swap(self) -> None:
        """Every change of the journal is announced. A journal that is newer than the tables shows that they are a backup.

        The item then says who owes what of a batch that the journal names no longer.
        """
        inflight, epoch = self.known_inflight(), self._ports.fenced_writer.epoch
        if inflight is not None and (inflight.journal_epoch != epoch or inflight.owed != self.owed):
            self._write(replace(inflight, epoch=epoch))

    # --- notes ---

    def note_problem(self, problem: str) -> None:
        """Keep what is wrong with the zone (empty: nothing any more) where ``kubesync status`` finds it."""
        token, now = self._ports.fenced_writer.token(), self._ports.clock.epoch()
        self._ports.fenced_writer.run((), [self._ports.problems.put(self.zone_id, problem, now, token)], token)

    def note_check(self, checked_at: float) -> None:
        """Keep since when (epoch seconds) every settled name in conflict has been checked: a successor goes on from there."""
        token = self._ports.fenced_writer.token()
        self._ports.fenced_writer.run((), [self._ports.problems.put_check(self.zone_id, checked_at, token)], token)
