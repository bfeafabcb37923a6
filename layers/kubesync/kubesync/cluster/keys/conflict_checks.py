"""What stands at names where a unit was refused, or where a key is in conflict, and what becomes of the key (I3).

A conflict check of a name that a key wants and may not have:

    the name is claimed by    what stands there                       what happens
    ----------------------    -----------------                       ------------
    another key               nothing in the way, or that key's set   planned anew: this key waits for the name like any other
    nobody, or this key       nothing in the way                      planned anew: claimed again
    any of them               what is in the way                      postponed, with what stands there now

The last also holds where another key claims the name and has yet to find out. Otherwise two such keys would queue again and pass the
claim to and fro for ever.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass

from kubesync.aws.tables.claims import ClaimTable
from kubesync.aws.tables.state import StateTable
from kubesync.cluster.keys.key_states import KeyStates
from kubesync.domain.batches import Unit
from kubesync.domain.dns.records import RecordKey, RecordSet, in_the_way
from kubesync.domain.dns.standing import Stands, what_stands, why_foreign
from kubesync.domain.errors import NewerSchemaError
from kubesync.domain.objects import ObjectKey
from kubesync.domain.plan import Policy, changes_of
from kubesync.domain.state import KeyState, Name
from kubesync.messages import Refusal, Sets

type AtNames = Mapping[str, Sets]
"""What stands at each name of a zone."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of one unit.

    ``landed``: its changes stand in the zone. Else it was refused: by a foreign set at its name (``conflict``), or with ``code`` (of
    ``domain.reasons``); ``reason`` says it in words.
    """

    unit: Unit
    landed: bool = False
    conflict: bool = False
    reason: str = ""
    code: str = ""

    @property
    def reason_code(self) -> str:
        """Of ``domain.reasons``; empty where it landed."""
        return "Conflict" if self.conflict else self.code


def judge(refusal: Refusal, state: KeyState) -> Outcome:
    """Decide about a unit that a refusal was about, from what stands at its name.

    known before   stands now          decision
    ------------   ----------          --------
    nothing        something           conflict: foreign, equal or not (I3)
    a set          nothing, delete     landed: somebody deleted it, nothing is left to do
    a set          another, or none    changed by hand: a full resync mends it
    as known       a foreign set that ours cannot stand beside             conflict (a CNAME, or a simple beside weighted ones)
    as known       nothing like that   rejected: the value itself
    """
    unit, actual = refusal.unit, refusal.standing
    if refusal.code:
        return Outcome(unit, code=refusal.code, reason=refusal.message)
    standing = {change: what_stands(change.before, actual.get(change.key)) for change in unit.changes}
    for change, stands in standing.items():
        if change.before is None and stands is Stands.FOREIGN:
            return Outcome(unit, conflict=True, reason=why_foreign(change.key, actual[change.key]))
    if all(change.after is None and stands is Stands.GONE for change, stands in standing.items()):
        return Outcome(unit, landed=True)
    for change, stands in standing.items():
        if change.before is not None and stands is not Stands.OURS:
            what = "is gone" if stands is Stands.GONE else "was changed"
            reason = f"{change.key.label} {what} by somebody else; `kubesync resync` mends it"
            return Outcome(unit, code="ChangedByHand", reason=reason)
    ours = {change.key for change in unit.changes} | state.applied.keys()
    for key, record_set in actual.items():
        for change in unit.changes:
            if key not in ours and change.after is not None and in_the_way(key, record_set, change.key, change.after):
                return Outcome(unit, conflict=True, reason=why_foreign(key, record_set, change.key))
    return Outcome(unit, code="Rejected", reason=f"Route 53 rejects it: {refusal.message}")


class ConflictCheck:
    """Compares names in conflict with what stands there, for keys of one cluster in one zone.

    ``fenced_here``: clusters whose fence this master has raised. ``free``: by key, names that nothing keeps it from. Reads claims,
    and the states of their owners, of whatever cluster.
    """

    def __init__(
        self,
        zone_id: str,
        found: Mapping[ObjectKey, AtNames],
        states: KeyStates,
        claims: ClaimTable,
        table: StateTable,
        fenced_here: AbstractSet[str],
    ) -> None:
        self._states = states
        self._fenced_here = fenced_here
        of_keys = states.states(found).values()
        names = {state.key: [n for n in sorted(state.conflicts) if n.zone_id == zone_id] for state in of_keys}
        claimed = claims.read({name for of_key in names.values() for name in of_key})
        owners = self._owners([claim.owner for claim in claimed.values()], table)
        self._reasons: dict[ObjectKey, dict[Name, str]] = {}
        for state in of_keys:
            reasons = self._reasons[state.key] = {}
            for name in names[state.key]:
                if name.name not in found[state.key]:
                    continue  # in conflict only since the names were read
                standing, claim = found[state.key][name.name], claimed.get(name)
                if claim is not None and claim.owner != state.key:
                    owner = owners.get(claim.owner)
                    theirs = standing.keys() if owner is None else owner.applied.keys()
                    standing = {key: record_set for key, record_set in standing.items() if key not in theirs}
                reasons[name] = _why_foreign(name, state, standing)
        free = {key: frozenset(n for n, why in of_key.items() if not why) for key, of_key in self._reasons.items()}
        self.free: Mapping[ObjectKey, frozenset[Name]] = {key: names for key, names in free.items() if names}

    def _owners(self, keys: Sequence[ObjectKey], table: StateTable) -> dict[ObjectKey, KeyState]:
        """States of keys that own names. Left out: keys of clusters that another master serves, or that a newer release has written."""
        own = [key for key in keys if key.cluster == self._states.config.name]
        elsewhere = self._fenced_here - {self._states.config.name}
        others = sorted({key for key in keys if key.cluster in elsewhere})
        owners = self._states.states(own)
        try:
            return owners | (table.load(others) if others else {})
        except NewerSchemaError:
            return owners

    def still_foreign(self, policy: Policy) -> Iterator[Outcome]:
        """Outcomes of names where something is in the way, once the free ones have been planned."""
        for key, reasons in self._reasons.items():
            state = self._states.states([key])[key]
            changes = changes_of(state, policy)
            # A free name (empty reason) is still here if its key could not be planned. Its old reason stays.
            for name in sorted(state.conflicts.keys() & reasons.keys()):
                if at_name := tuple(change for change in changes if Name.of(change.key) == name):
                    reason = reasons[name] or state.conflicts[name]
                    yield Outcome(Unit(key, at_name), conflict=True, reason=reason)


def _why_foreign(name: Name, state: KeyState, standing: Mapping[RecordKey, RecordSet]) -> str:
    """What is in the way at a name, in words: the same as before where that is still true. Empty: nothing."""
    wanted = sorted(key for key in state.intended if Name.of(key) == name)
    reasons = [
        why_foreign(key, stands, None if key == other else other)
        for key, stands in standing.items()
        if key not in state.applied
        for other in wanted
        if in_the_way(key, stands, other, state.intended[other])
    ]
    known = state.conflicts[name]
    return known if known in reasons else next(iter(reasons), "")
