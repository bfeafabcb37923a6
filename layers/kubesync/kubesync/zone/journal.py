"""The journal and the inflight item of one hosted zone, and how they are settled after an unclean end (I2).

What the journal in the zone means for a master:

    journal                              meaning
    -------                              -------
    none                                 somebody deleted it: it is made again by the next batch, reported
    of another owner, unreadable, or     nothing is written to this zone; reported
    a set in its place (a CNAME, say)
    ours, newer epoch, or one that our   not master any more; or, with the lease truly ours, tables were lost or
    tables cannot know                   restored: nothing is written, reported
    ours, else                           what the next batch swaps

The item of a closed batch stays until the next announcement replaces it. It is cleared before ``applied`` may change without a batch,
before a cluster is forgotten, and before the session ends: a successor that settles would close its units once more.

Units that a cluster does not close in time are *unclosed*. Every item that is written from then on carries them.
"""

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
_ANY_BATCH: Final = "0" * 32  # in the place of a batch's id, to measure a journal: all ids are as long
_TORN: Final = (
    "an item of what was under way was deleted or restored, and is lost: names that had landed are in conflict; adopt them with "
    "`kubesync recover`, then run `kubesync resync`"
)


class ZoneBlockedError(ZoneError):
    """Nothing may be written to this zone; the message says why and what to do."""


class ZoneJournal:
    """Journal and inflight item of one zone, as this master last read or wrote them.

    ``remark``: that the journal was missing. Empty: it was not.
    ``served``: clusters that have published here in this session. An announcement checks their fences.
    ``unclosed``: by cluster, landed units that it has not closed. What is written next holds them.
    ``torn``: a part of an inflight item was missing, and nobody has compared the zone since.
    ``stored_problem``: what is stored as wrong with the zone. Empty: nothing is. None: not read yet.
    """

    def __init__(self, zone_id: str, ports: ZonePorts, zone: Zone | None) -> None:
        self.zone_id = zone_id
        self.remark = ""
        self.served: set[str] = set()
        self.unclosed: dict[str, LandedUnits] = {}
        self.torn = False
        self.stored_problem: str | None = None
        self._ports = ports
        self._zone = zone
        self._journal: Journal | None = None
        self._journal_read = False
        self._inflight: Inflight | None = None
        self._inflight_read = False
        self._written = False  # this master has announced a change of the journal

    # --- journal ---

    def journal_key(self) -> RecordKey:
        """Return the key of the journal's record set. Reads the zone's name once."""
        if self._zone is None:
            self._zone = self._ports.client.zone(self.zone_id)
        return journal_record_key(self._zone, self._ports.deployment, self._ports.shard)

    def next_journal(self, batch: str) -> Journal:
        """Return the journal that a batch with this id creates."""
        return make_journal(self._ports.deployment, self._ports.fenced_writer.epoch, batch)

    def known_journal(self) -> Journal | None:
        """Return the journal as it was read or written last. Reads it if that was never done; raises as ``read_journal``."""
        return self._journal if self._journal_read else self.read_journal()

    def record_swapped(self, journal: Journal) -> None:
        """Note that a batch has landed and created this journal."""
        self._journal, self._journal_read, self._written = journal, True, True

    def read_journal(self) -> Journal | None:
        """Read the journal from the zone, and return it if this master may go on from it (see the table at the head of the file). None: there is
        none. If there was one before, somebody has deleted it: ``remark`` says so.

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
            if self._is_unknown_to_tables(journal):
                self._ports.check_holds_lease()
                raise ZoneBlockedError(
                    f"the journal of zone {self.zone_id} (epoch {journal.epoch}) is not one that our tables "
                    f"(epoch {self._ports.fenced_writer.epoch}) can know: were they lost or restored? see `kubesync recover`"
                )
        elif self._journal is not None or self._has_cleared_item():
            self.remark = f"the journal of zone {self.zone_id} was missing and is made again"
            logger.warning("the journal of a zone was missing and is made again", zone=self.zone_id)
        self._journal, self._journal_read = journal, True
        return journal

    def _has_cleared_item(self) -> bool:
        """Whether the inflight item is cleared. Then a batch has landed here or was settled before, and must have left a journal."""
        inflight = self.known_inflight()
        return inflight is not None and not inflight.batch

    def _is_unknown_to_tables(self, journal: Journal) -> bool:
        """Whether our tables cannot know a journal of ours, since they were lost or restored from a backup (ADR 0007).

        The inflight item announces every change of the journal first. So the tables know it, except

        the journal's epoch                            the tables
        -------------------                            ----------
        later than ours                                cannot know it
        ours, but this master has not written yet      cannot know it: an epoch is drawn once, unless the counter of epochs went back
        another one that the item did not announce     cannot know it, if the item says the same when it is read again

        Raises StaleStateError if the item has changed meanwhile.
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
        """Whether the inflight item, as read last, knows the epoch of this journal."""
        inflight = self.known_inflight()
        return inflight is not None and inflight.knows(journal.epoch)

    def batch_limits(self) -> BatchLimits:
        """Return what a batch may hold in addition to the journal swap."""
        limits = self._ports.limits
        journals = [self.known_journal(), self.next_journal(_ANY_BATCH)]
        characters = sum(journal.record_set.characters for journal in journals if journal is not None)
        return BatchLimits(limits.elements - _SWAP_ELEMENTS, limits.characters - characters)

    @staticmethod
    def limit_clusters(units: Sequence[Unit]) -> tuple[Unit, ...]:
        """Return the units of the first ``_MAX_CLUSTERS`` clusters: one transaction can check the fences of no more. The others wait for a later
        batch. Units that go together stay together.
        """
        first = set(islice(dict.fromkeys(unit.key.cluster for unit in units), _MAX_CLUSTERS))
        left = {unit for unit in units if unit.key.cluster not in first}
        if left:  # with all that goes together with them
            left = {unit for group in together(units) if not left.isdisjoint(group) for unit in group}
        return tuple(unit for unit in units if unit not in left)

    # --- inflight item ---

    def known_inflight(self) -> Inflight | None:
        """Return the inflight item, which is read once, and again after ``reread_inflight``. None: this deployment never wrote to the zone.

        To read it also adds to ``unclosed`` what the item says that clusters have not closed, and sets ``torn`` if the item is.
        """
        if not self._inflight_read:
            self._inflight = self._ports.inflight.read(self.zone_id)
            if self._inflight is not None:
                self.unclosed = {**self._inflight.unclosed, **self.unclosed}
                self.torn |= self._inflight.torn
            self._inflight_read = True
        return self._inflight

    def reread_inflight(self) -> None:
        """Let ``known_inflight`` read the item again, because the cached one may be stale."""
        self._inflight_read = False

    def announce(self, batch: str, units: tuple[Unit, ...]) -> None:
        """Write the inflight item of a batch. Must be done before the batch is sent (ADR 0002, step 2)."""
        self._write(Inflight(batch, self._ports.fenced_writer.epoch, units))

    @property
    def holds_landed(self) -> bool:
        """Whether the inflight item holds units that have landed: unclosed ones, or those of the batch that the journal names.

        A successor that settles would close them, even if they are closed already. This must not undo what has changed in their keys since,
        without a batch. So the item is cleared before such a change (see the head of the file).
        """
        inflight, journal = self._inflight, self._journal
        if inflight is None:
            return False
        return bool(inflight.unclosed or (journal is not None and inflight.batch and inflight.batch == journal.batch))

    def clear(self) -> None:
        """Clear the inflight item, if it is not clear: nothing is under way any more. What clusters have not closed stays in it.

        Call it only once the clusters have closed the batch, or it is noted as unclosed, or if the batch can never land.
        """
        inflight = self.known_inflight()
        if inflight is not None and (inflight.batch or inflight.unclosed != self.unclosed):
            self._write(replace(inflight, batch="", units=()))

    def drop_units_of(self, cluster: str) -> None:
        """Drop the units of a cluster from the inflight item. Called when the cluster is removed and the zone is gone: nobody will ever know what
        became of these units.

        The item keeps the batch's name while it holds units of others.
        """
        inflight = self.known_inflight()
        if inflight is not None:
            self.unclosed.pop(cluster, None)
            units = tuple(unit for unit in inflight.units if unit.key.cluster != cluster)
            self._write(replace(inflight, batch=inflight.batch if units else "", units=units))

    def _write(self, inflight: Inflight) -> None:
        """Write the inflight item, with what is not closed, in a transaction that checks the fences. Raises StaleStateError if it has changed."""
        fenced_writer = self._ports.fenced_writer
        token = fenced_writer.token()
        before = self.known_inflight()
        after, actions = self._ports.inflight.put(
            self.zone_id, before, replace(inflight, unclosed=dict(self.unclosed)), token
        )
        self._written = True
        # Check the fences of clusters whose keys may land; if there are none, the writer checks the shard's. Leave out clusters that have not
        # closed: a write of theirs may hang, and this one would wait for it.
        landing = {unit.key.cluster for unit in inflight.units} & self.served - self.unclosed.keys()
        fenced_writer.run(sorted(landing), actions, token)
        self._inflight = after

    # --- after an unclean end ---

    def find_landed(self) -> LandedUnits | None:
        """Return the units of the batch that was under way, if the journal proves that it has landed. None: no batch has, as far as it says.

        This begins settling. The units must be closed, or be unclosed in an item, *before* the journal is swapped: afterwards the proof is
        gone. The inflight item is read on the way, which fills ``unclosed``.

        Raises:
            NotMasterError: the item, or the journal, is of a later master.
            ZoneBlockedError: the item is of a later epoch than ours, although this session holds the lease. Else as ``read_journal``.
        """
        inflight = self.known_inflight()
        if inflight is None:
            return None
        if inflight.epoch > self._ports.fenced_writer.epoch:
            # Either a later master has announced a batch, or tables were lost or restored. The lease tells which: if another session holds it,
            # this raises NotMasterError. The journal need not show a later master yet: one that found no item here has not swapped it
            # (``lock_out_late_batches``), and its first batch may be on its way. To go on would be a write of a replaced master (I2).
            self._ports.check_holds_lease()
            raise ZoneBlockedError(
                f"what is in flight in zone {self.zone_id} has epoch {inflight.epoch}, above ours "
                f"({self._ports.fenced_writer.epoch}): were tables lost or restored? see `kubesync recover`"
            )
        journal = self.read_journal()
        if inflight.batch and journal is not None and journal.batch == inflight.batch:
            return LandedUnits(inflight.batch, inflight.units)
        return None

    def lock_out_late_batches(self) -> bool:
        """Swap the journal, which ends settling: a batch that is still on its way would delete a journal that is gone, so it can no longer land.

        Call ``find_landed`` first: after the swap the journal no longer proves what has landed.

        Returns:
            False: somebody's late batch came first. Settle again from what stands now.
        """
        if self.known_inflight() is None:
            return True  # no batch was ever sent to this zone: its inflight item would have been written before
        self._announce_swap()
        fresh = self.next_journal(self._ports.scheduler.token_hex(16))
        self._ports.fenced_writer.check()
        swap = journal_swap(self.journal_key(), self._journal, fresh)
        self._written = True
        try:
            self._ports.client.change(self.zone_id, swap, "kubesync takes over")
        except BatchRefusedError:
            seen = self.read_journal()
            if seen is None or seen.batch != fresh.batch:
                return False
            # else: something on the way has sent the request twice, and the first one has landed.
        self.record_swapped(fresh)
        self.clear()
        return True

    def _announce_swap(self) -> None:
        """Write two things to the inflight item, unless it says both already: that this master swaps the journal, and what is not closed.

        Every change of the journal is announced, so a journal that is newer than the tables shows that they are a backup. What is not closed
        must be in the item, because after the swap the journal no longer proves that it has landed.
        """
        inflight, epoch = self.known_inflight(), self._ports.fenced_writer.epoch
        if inflight is not None and (inflight.journal_epoch != epoch or inflight.unclosed != self.unclosed):
            self._write(replace(inflight, epoch=epoch))

    # --- for people, and for a successor ---

    def store_problem(self, problem: str) -> None:
        """Store what is wrong with the zone, if it differs from what is stored.

        The first call reads what an earlier session stored. That is also how a session learns that the zone is ``torn``.

        Args:
            problem: in one line. Empty: nothing else is wrong than that the zone may be ``torn``.
        """
        if self.stored_problem is None:
            self.stored_problem = self._ports.problems.read(self.zone_id)  # of an earlier session
            self.torn |= self.stored_problem == _TORN
        problem = problem or (_TORN if self.torn else "")
        if problem != self.stored_problem:
            token, now = self._ports.fenced_writer.token(), self._ports.scheduler.epoch_seconds()
            self._ports.fenced_writer.run((), [self._ports.problems.put(self.zone_id, problem, now, token)], token)
            self.stored_problem = problem

    def store_check_time(self, checked_at: float) -> None:
        """Store since when (epoch seconds) every name that is checked hourly has been checked (``check_schedule``): a successor goes on there."""
        token = self._ports.fenced_writer.token()
        self._ports.fenced_writer.run((), [self._ports.problems.put_check(self.zone_id, checked_at, token)], token)
