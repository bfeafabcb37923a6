"""Plans a key's upstreams: what the table holds, and what has to be written to it."""

from collections.abc import Callable, Iterable, Mapping, Sequence, Set as AbstractSet
from dataclasses import replace
from functools import partial

from kubesync.actors.parallel import one_by_one
from kubesync.aws.dynamodb.store import Action
from kubesync.aws.tables.audit import Entry
from kubesync.aws.tables.of_clusters import Tables
from kubesync.cluster.keys.key_writes import Made, Piece
from kubesync.domain.dns.desired import Desired
from kubesync.domain.dns.records import Node
from kubesync.domain.large_keys import LARGE
from kubesync.domain.state import KeyState, UpstreamState
from kubesync.domain.upstreams.nodes import ChosenNodes, digest, slices_of


class UpstreamPlans:
    """Plans upstreams for one section of a commit.

    Args:
        clock_epoch: current time in seconds since 1970, for labels only.
        reread: compare with what the table holds, and do not trust the keys' own states (a full resync).
        untrusted: upstreams that were found in the table with another version than the keys know.
    """

    def __init__(
        self, tables: Tables, clock_epoch: Callable[[], float], *, reread: bool, untrusted: AbstractSet[str]
    ) -> None:
        self._table, self._named = tables.upstreams, tables.named
        self._reads = tables.reads  # calls a function for many items, in parallel
        self._now = clock_epoch
        self._reread = reread
        self._untrusted = untrusted

    def read_stored(self, wants: Iterable[tuple[KeyState, KeyState, Desired]]) -> dict[str, UpstreamState]:
        """Read upstreams from the table, if the keys' own states do not know them or are not trusted. Returns them by name, without those that the
        table lacks.

        If the table has other nodes than the key wants, the digest of the result is empty, so that the upstream is written again.

        Args:
            wants: of each key: as stored, as it is seen now, and what it wants.
        """
        # By name of the upstreams to read: the nodes that the key wants. None: it wants no such upstream any more.
        wanted: dict[str, Sequence[Node] | None] = {}
        for _, seen, want in wants:
            if want.upstreams is not None:  # else it is not known what the key wants, and its upstreams stay
                names = want.upstreams.keys() | seen.upstreams.keys()
                wanted |= {name: want.upstreams.get(name) for name in names if self._must_read(name, seen)}
        if not (self._reread or self._untrusted):
            return self._table.current(sorted(wanted)) if wanted else {}
        compared = sorted(wanted)
        # Reads run in parallel, because thousands one by one would delay the cluster's events for a minute. Large upstreams are read
        # one by one, because together they would fill the memory.
        large = sum(len(nodes or ()) for nodes in wanted.values()) > LARGE
        found = (one_by_one if large else self._reads)(partial(self._compare, wanted), compared)
        return {name: state for name, state in zip(compared, found, strict=True) if state is not None}

    def _compare(self, wanted: Mapping[str, Sequence[Node] | None], name: str) -> UpstreamState | None:
        """Read one upstream as ``read_stored`` returns it. None: the table lacks it."""
        stored, nodes = self._table.read(name), wanted[name]
        if stored is None:
            return None
        return replace(stored.state, digest=digest(nodes) if nodes is not None and stored.holds(nodes) else "")

    def plan(
        self, seen: KeyState, wanted: Mapping[str, Sequence[Node]], stands: Mapping[str, UpstreamState], why: str
    ) -> tuple[KeyState, list[Piece]]:
        """Plan the upstreams of a key. Returns the key as it will be, and the writes. ``stands``: the result of ``read_stored``."""
        table = self._table
        pieces: list[Piece] = []
        upstreams = dict(seen.upstreams)
        for upstream in (*sorted(wanted), *sorted(seen.upstreams.keys() - wanted.keys())):
            nodes, known = wanted.get(upstream), seen.upstreams.get(upstream)
            stored = stands.get(upstream) if self._must_read(upstream, seen) else known
            if nodes is not None and known is not None and stored == known and known.digest == digest(nodes):
                continue
            # 1. Write the nodes, or delete the upstream (``nodes`` is None). The actions for a large one, which is one with ``sizes``, would fill
            # the memory. So they are made only when they are sent (``Made``), and here only their number and bytes are known.
            put = partial(table.put, upstream, stored, nodes, self._now())
            sizes = nodes.sizes if isinstance(nodes, ChosenNodes) else ()
            state, actions = (table.following(stored, nodes or (), slices_of(sizes)), []) if sizes else put()
            marks = self._named.marks(upstream, state.version)
            made: Sequence[Action] | Made = (*actions, *marks)
            if sizes:
                # One action for each slice now or before, because surplus slices are removed.
                count = max(state.slices, 0 if stored is None else stored.slices) + len(marks)
                made = Made(put, marks, (count, sum(sizes)))
            # 2. What the key knows of it from now on, and the audit.
            upstreams[upstream] = state
            if nodes is None:
                del upstreams[upstream]
            before_text = None if known is None else f"version {known.version}"
            after_text = None if nodes is None else f"version {state.version}, {len(nodes)} nodes"
            entry = Entry(f"upstream {upstream}", before_text, after_text, why, str(seen.key))
            pieces.append(Piece(made, entries=(entry,), upstream=upstream))
        return replace(seen, upstreams=upstreams), pieces

    def _must_read(self, upstream: str, seen: KeyState) -> bool:
        """Whether an upstream has to be read from the table, because the key's own state does not know it or is not trusted."""
        return self._reread or upstream in self._untrusted or upstream not in seen.upstreams
