"""What is done of one resync. It is stored, so that the next session goes on with it.

    a cluster is listed ── its part ── each of its zones is compared ── its part again ... ── it is done ── all are: the result

A *part* says what is done of one cluster. It is written only after that is durable, so what a part says need not be done again. The
transaction has the shard's fence (I2), and a condition that the request still exists. A *normal* resync is neither forced nor a dry run.

    the resync                      if the session ends before the resync is done
    ----------                      ---------------------------------------------
    normal                          the next session goes on with what is missing
    forced, or a dry run            it ends with an error: a person meant it for this moment (I5)

The report of a resync is cut to a size that every transport can carry. Its counts stay exact.

    limit                                                          source
    -----                                                          ------
    6 MB, the answer of a Lambda function                          Lambda quotas, "Invocation payload"
    4 MB, a transaction; 400 KB an item (``ResyncTable`` slices)  DynamoDB, TransactWriteItems and item size
"""

import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any, Final, Self

from kubesync.aws.fencing.writer import StaleStateError
from kubesync.aws.tables.control.resync_requests import ResyncRequest, ResyncTable
from kubesync.domain.errors import KubesyncError, StoreError
from kubesync.domain.objects import equal_share
from kubesync.operations.ports import Master

MAX_REPORT_BYTES: Final = 2_000_000
"""As JSON in ASCII, the longest form. Half of the smallest limit, because other data goes with it."""

ROWS: Final = ("changes", "drift", "forgotten", "conflicts", "held_deletions")
"""The lists of a cluster's report. Only a dry run has ``changes``; ``forgotten`` is missing where there is nothing."""

KEPT_ROWS: Final = 20
_KEPT_LISTS: Final = ("drift", "forgotten")
_KEPT: Final = ("cluster", "error", "changed_keys", "stray_upstreams", "held", "counts", "held_counts", *_KEPT_LISTS)
"""Fields of a cluster's report that stay in the stored result (``in_short``). Of ``_KEPT_LISTS``, the first KEPT_ROWS rows."""
_CUT: Final = (*ROWS, "records", "set_aside")
"""Lists that may be cut. ``records``, of a dry run, has exact counts of its own: ``plan``. ``set_aside``, of a dry run: keys."""

MAX_PART_BYTES: Final = 500_000
"""The limit of a cluster's part, as JSON before it is packed. Rows beyond it are only counted."""

RUNNING: Final = "running"
"""``status`` of a report whose resync goes on. A finished report has no status."""

WITHDRAWN_REPORT: Final = "withdrawn"
"""``status`` of a report whose resync a person interrupted: what was done stays, and no session goes on."""

WITHDRAWN: Final = "the resync was withdrawn"


class NotKeptError(KubesyncError):
    """What was done could not be stored. The resync stops, and a later one goes on with what is stored."""


class ResyncWithdrawnError(NotKeptError):
    """Nobody waits for the resync any more. It stops."""


@dataclass(frozen=True, slots=True)
class Part:
    """What is done of one cluster.

    Args:
        revision: the configuration's revision. If the cluster has another revision by now, its resync begins again.
        document: the cluster's report so far; the complete report, or the cluster and its ``error``, once ``done``.
        zones: the zones that are not compared yet.
    """

    revision: int = 0
    document: Mapping[str, Any] = field(default_factory=dict)
    zones: tuple[str, ...] = ()
    done: bool = False

    @classmethod
    def of(cls, stored: Mapping[str, Any]) -> Self:
        """Make a part from its stored form."""
        return cls(stored["revision"], stored["document"], tuple(stored["zones"]), stored["done"])

    @property
    def failed(self) -> bool:
        """Whether the cluster could not be resynchronised."""
        return "error" in self.document


class ResyncProgress:
    """The parts of a resync. Those of a normal one are stored. Of a forced one, or a dry run, ``check`` asks whether the caller still waits.

    ``request``: what was asked for. ``names``: the clusters of the resync. ``goes_on``: the resync is normal, and its request was stored when it
    began: parts are stored, and the next session goes on with it. ``own_session``: the session was started for this request, and watches no
    cluster yet. ``zones_held``: such a session, for a dry run, has no zone actors (``Master.take_over``): no batch is under way, and no zone is
    settled.

    Raises from all methods:
        NotKeptError: DynamoDB cannot be used now; or the resync was withdrawn (ResyncWithdrawnError).
        NotMasterError: another session holds the lease.
    """

    def __init__(self, master: Master, request: ResyncRequest, *, stored: bool, own_session: bool) -> None:
        self.request = request
        self.own_session = own_session
        self.zones_held = own_session and request.dry_run
        self.goes_on = stored and request.is_normal
        self.names: list[str] = []
        self._asks = stored and not request.is_normal  # ``check`` asks whether the caller still waits
        self._asked_at = 0.0  # when (monotonic) it asked last
        self._master = master
        self._table = master.parts.resyncs
        self._parts: dict[str, Part] = {}  # by cluster; none: nothing is done

    def begin(self, names: Iterable[str]) -> None:
        """Read what earlier sessions have done, and store that the resync of these clusters is under way."""
        self.names = [*names]
        if self.goes_on:
            self._parts = {name: Part.of(part) for name, part in self._table.parts(self.request).items()}
            self._write("", [])  # no part: only says that the resync is under way

    def part(self, name: str) -> Part:
        """Return what is done of a cluster."""
        return self._parts.get(name, Part())

    def begin_cluster(self, name: str, revision: int) -> Part:
        """Return what is done of a cluster with this revision of its configuration. What was done with another one does not count any more."""
        if self.part(name).revision != revision:
            self._parts[name] = Part(revision)
        return self.part(name)

    def check(self, every_seconds: float = 0.0) -> None:
        """Raise ResyncWithdrawnError once nobody waits for a forced resync or a dry run. A normal resync is checked whenever a part is stored.

        Args:
            every_seconds: do nothing if the last question was less than so many seconds ago. 0: ask in any case.

        Raises:
            StoreError: DynamoDB does not answer now. The caller may go on: the next question is soon.
        """
        now = self._master.parts.scheduler.monotonic()
        if not self._asks or now - self._asked_at < every_seconds:
            return
        self._asked_at = now
        if not self._table.waiting(self.request):
            raise ResyncWithdrawnError(WITHDRAWN)

    def keep(self, name: str, part: Part) -> None:
        """Remember what is done of a cluster. If the resync is one that goes on, also store it, cut to ``MAX_PART_BYTES``."""
        self._parts[name] = part
        if self.goes_on:
            (document,) = within_limits({"clusters": [part.document]}, MAX_PART_BYTES)["clusters"]
            self._write(name, {**asdict(part), "document": document})

    def fail(self, name: str, error: str) -> None:
        """Keep that a cluster could not be resynchronised: it is done, and its report is this error."""
        self.keep(name, replace(self.part(name), document={"cluster": name, "error": error}, zones=(), done=True))

    def cut_off(self, error: str) -> dict[str, Any]:
        """End a resync that was withdrawn, and return its report: of clusters that are done their reports, of all others this error.

        Stores nothing.
        """
        for name in self.names:
            if not self.part(name).done:
                self._parts[name] = Part(document={"cluster": name, "error": error}, done=True)
        return self.report()

    def report(self, named: Sequence[Mapping[str, str]] = ()) -> dict[str, Any]:
        """Return the report of all clusters, which are done. ``named``: the named upstreams that drifted."""
        return report_of(self.request, [self.part(name).document for name in self.names], named)

    def _write(self, cluster: str, part: object) -> None:
        """Store how many clusters are done, and a cluster's part (empty ``cluster``: none). Refused if the request was withdrawn.

        Raises what the class says.
        """
        writer, request = self._master.fenced_writer, self.request
        token, now = writer.token(), self._master.parts.scheduler.epoch_seconds()
        done = sum(each.done for each in self._parts.values())
        actions = self._table.put_progress(request, self._master.parts.session, len(self.names), done, now, token)
        if cluster:
            actions += self._table.put_part(request, cluster, part, token)
        try:
            writer.run((), actions, token)  # no cluster: checks the shard's fence
        except StaleStateError as stale:
            raise ResyncWithdrawnError(WITHDRAWN) from stale
        except StoreError as error:
            raise NotKeptError(f"what the resync has done could not be kept: {error}") from error


def report_of(
    request: ResyncRequest, clusters: Sequence[Mapping[str, Any]], named: Sequence[Mapping[str, str]] = (), **more: str
) -> dict[str, Any]:
    """Return the report of a resync from those of its clusters, cut to a size that every transport can carry. ``more``: further fields."""
    head = {"dry_run": request.dry_run, "forced": request.force, "named_upstreams": [*named]}
    return within_limits({**head, "clusters": clusters, **more})


def done_clusters(request: ResyncRequest, table: ResyncTable) -> list[Mapping[str, Any]]:
    """Read the reports of the clusters of a normal resync that are done. Raises StoreError."""
    return [part["document"] for _, part in sorted(table.parts(request).items()) if part["done"]]


def with_counts(cluster: Mapping[str, Any]) -> dict[str, Any]:
    """Return a cluster's report with the length of each list: the rows that it has, and those that were left out when its part was stored.

    ``counts``: by list. ``held_counts``: deletions held back, by listener. Called for the complete report of a cluster.
    """
    left_out = cluster.get("left_out", {})
    counts = {name: len(cluster[name]) + left_out.get(name, 0) for name in ROWS if name in cluster}
    return {**cluster, "counts": counts, "held_counts": Counter(row["listener"] for row in cluster["held_deletions"])}


def within_limits(report: Mapping[str, Any], max_bytes: int = MAX_REPORT_BYTES) -> dict[str, Any]:
    """Return the report with the rows that fit: the first rows of each list, and ``left_out``, the number of the others.

    Short lists stay complete. The long ones share the remaining bytes equally. All else is never cut. ``left_out`` of a report that was cut
    before grows.
    """
    clusters: list[dict[str, Any]] = [dict(cluster) for cluster in report["clusters"]]
    # Each list that may be cut, as its cluster's report and its field; and the sizes of its rows.
    places = [(cluster, name) for cluster in clusters for name in _CUT if cluster.get(name)]
    sizes = [[_size(row) for row in cluster[name]] for cluster, name in places]
    # The report with all of these lists empty: its size is what they cannot have.
    bare = {**report, "clusters": [{**each, **{name: [] for name in _CUT if name in each}} for each in clusters]}
    # 100 bytes for each "left_out".
    share = equal_share(map(sum, sizes), max(0, max_bytes - _size(bare) - 100 * len(places)))
    for (cluster, name), of_list in zip(places, sizes, strict=True):
        kept, used = 0, 0
        while kept < len(of_list) and used + of_list[kept] <= share:
            used += of_list[kept]
            kept += 1
        if kept < len(of_list):
            left_out = cluster.get("left_out", {})
            cluster["left_out"] = {**left_out, name: left_out.get(name, 0) + len(of_list) - kept}
            cluster[name] = cluster[name][:kept]
    return {**report, "clusters": clusters}


def figures_of(report: Mapping[str, Any]) -> dict[str, int]:
    """Return the figures of a resync: ``clusters``, ``errors`` (clusters and named upstreams that failed), ``differences`` found."""
    clusters = report["clusters"]
    errors = sum("error" in each for each in (*clusters, *report.get("named_upstreams", ())))
    return {"clusters": len(clusters), "errors": errors, "differences": _count_differences(report, "changed_keys")}


def proven(report: Mapping[str, Any]) -> int:
    """Count the differences that show a fault, for the alarm (``ResyncDifferences``).

    A key that the lists have changed shows none: the event of this change may still have come. Only a key counts whose event the watch has
    missed. All differences of other kinds count.
    """
    return _count_differences(report, "missed_keys")


def _count_differences(report: Mapping[str, Any], of_lists: str) -> int:
    """Count differences of all kinds in a report: keys, orphaned upstreams, sets that drifted or are forgotten, named upstreams.

    ``of_lists``: the field of a cluster's report that counts keys, which differ: ``changed_keys`` or ``missed_keys``. Errors do not count.
    """
    clusters = [each for each in report["clusters"] if "error" not in each]
    found: int = sum(each.get(of_lists, 0) + each["stray_upstreams"] + each["counts"]["drift"] for each in clusters)
    found += sum(each["counts"].get("forgotten", 0) for each in clusters)
    return found + sum("error" not in row for row in report.get("named_upstreams", ()))


def in_short(report: Mapping[str, Any], rows: int = KEPT_ROWS) -> dict[str, Any]:
    """Return the report of a resync as its stored result has it, which people see later: of each cluster the fields ``_KEPT`` that it has.

    Of lists, and of named upstreams, the first ``rows`` are kept.
    """
    clusters = [
        {name: each[name][:rows] if name in _KEPT_LISTS else each[name] for name in _KEPT if name in each}
        for each in report["clusters"]
    ]
    return {"clusters": clusters, "named_upstreams": list(report.get("named_upstreams", ()))[:rows]}


def _size(document: object) -> int:
    return len(json.dumps(document)) + 2  # with a comma and a space
