"""Requests for a full resync from an invocation that is not the master, the master's answers, and what becomes of each resync.

control table
partition          sort                       holds
---------          ----                       -----
resync#<shard>     <timestamp>#<id>           cluster ("": all), dry_run, force, scheduled (if so), status, slices, report, expires_at
resync#<shard>     <timestamp>#<id>#<001..>   further slices of a report over 100 KB
resync#<shard>     <timestamp>#<id>#underway  how far a resync is that goes on in the next session (``resync_progress``)
resynced#<shard>   <timestamp>#<id>           the result, kept like the audit: figures (``put_result``), slices, body: the report in short; expires_at
resynced#<shard>   <timestamp>#<id>#<001..>   further slices of a body over 100 KB
resync-parts#<id>  <cluster>                  slices, body: the cluster's part of the report so far; expires_at
resync-parts#<id>  <cluster>#<001..>          further slices

``status`` is ``asked`` until a master has answered, then ``answered``. A resync that its session cut off stays ``asked``.
Who asks and who answers are two processes: *the caller* stores the request, waits, and collects the answer or withdraws the request.
``<timestamp>#<id>`` is the request's id. Parts stay until they expire, a day after the request's hour: nobody reads them without it.
"""

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Final

from kubesync.aws.dynamodb.store import CONTROL, Action, Check, Delete, Equals, Item, Key, Store, Update
from kubesync.aws.tables.items import attributes_of, place_of, put, read_slices, readable, slice_place, sliced
from kubesync.aws.tables.upstreams import timestamp

# A request without an answer, or whose caller is gone, is dropped after this long.
REQUEST_LIFETIME_SECONDS: Final = 3600
UNDERWAY: Final = "#underway"
_ASKED: Final = (Equals("status", "asked"),)
_PARTS_STAY_SECONDS: Final = 86_400
"""After the request's hour, when what was done becomes its result."""


@dataclass(frozen=True, slots=True)
class ResyncRequest:
    """A request. An empty ``cluster`` means all of them. ``at_ms``: its time by the caller's clock. ``scheduled``: nobody waits for it."""

    id: str
    cluster: str
    dry_run: bool
    force: bool
    at_ms: int
    scheduled: bool = False

    @property
    def is_normal(self) -> bool:
        """Whether the next session continues the resync. A forced one is meant for now only (I5), and a dry run shows what is now."""
        return not (self.dry_run or self.force)

    @property
    def expires_at(self) -> int:
        """The time (epoch seconds) after which nobody begins the resync."""
        return self.at_ms // 1000 + REQUEST_LIFETIME_SECONDS


def new_request(
    random_id: str, cluster: str, now: float, *, dry_run: bool, force: bool, scheduled: bool = False
) -> ResyncRequest:
    """Make a request. Writes nothing; see ``ResyncTable.store``."""
    return ResyncRequest(f"{timestamp(now)}#{random_id}", cluster, dry_run, force, int(now * 1000), scheduled)


def request_of(id_: str, item: Item) -> ResyncRequest:
    """The request that an item holds, or whose progress it is. ``id_``: its id."""
    # The progress of one neither says that it is a dry run nor that it is forced: such a resync does not go on.
    return ResyncRequest(id_, **{"dry_run": False, "force": False} | attributes_of(ResyncRequest, item))


class ResyncTable:
    """The mailbox between an invocation and a running master, progress and results.

    A master's writes belong into transactions with its shard's fence (I2): methods return them.

    Args:
        retention_seconds: how long results stay, and progress. Who writes neither needs none.
    """

    def __init__(self, store: Store, shard: str, retention_seconds: int = 0) -> None:
        self._store = store
        self._partition = f"resync#{shard}"
        self._results = f"resynced#{shard}"
        self._retention_seconds = retention_seconds

    # --- requests ---

    def store(self, request: ResyncRequest) -> None:
        """Store a request."""
        fields = {name: getattr(request, name) for name in ("cluster", "dry_run", "force", "at_ms", "expires_at")}
        scheduled = {"scheduled": True} if request.scheduled else {}
        self._store.write(put(self._place(request), status="asked", **fields, **scheduled))

    def clean_up_and_list(self, now: float) -> list[ResyncRequest]:
        """Return the requests that the master has to work on, and delete what nobody waits for any more. The master asks this again and again.

        A caller waits for an hour at most (``REQUEST_LIFETIME_SECONDS``). A normal request (``is_normal``) stays until it has a result, because a
        session may have begun it.

        item                                       in the request's hour                    after it
        ----                                       ---------------------                    --------
        a normal request, not answered             returned                                 returned: the master stores an error as its result
        a forced one or a dry run, not answered    returned                                 deleted
        an answer, or a slice of one               stays                                    deleted: nobody collected it
        progress; the request's item exists        stays                                    stays
        progress; the request's item is gone       deleted: an older release has answered   the request is returned, made from the progress:
                                                   it, or its caller withdrew it            an older release or DynamoDB deleted its item
        """
        found: list[ResyncRequest] = []
        known: set[str] = set()  # ids of all items but progress
        underway: dict[str, Item] = {}  # the progress items, by the request's id
        # A request of a newer release is for a newer master. It blocks no other (I4), and expires.
        for item in readable(iter(self._store.query(CONTROL, self._partition)), lambda _newer: None):
            place = item["sk"]
            if place.endswith(UNDERWAY):
                underway[place.removesuffix(UNDERWAY)] = item
                continue
            known.add(place)
            request = request_of(place, item) if item.get("status") == "asked" else None
            old = item.get("expires_at", 0) <= now
            if request is not None and (request.is_normal or not old):
                found.append(request)
            elif old:
                self._store.write(Delete(Key(CONTROL, self._partition, place)))
        for request in (request_of(id_, item) for id_, item in underway.items() if id_ not in known):
            if request.expires_at <= now:
                found.append(request)
            else:
                self._store.write(self.delete_progress(request))
        return found

    def waiting(self, request: ResyncRequest) -> bool:
        """Whether the caller still waits for the answer."""
        item = self._store.get(self._place(request))
        return item is not None and item["status"] == "asked"

    def answer(self, request: ResyncRequest, report: Mapping[str, object], token: str) -> list[Action]:
        """Return the writes that store the report. They are refused if the caller no longer waits for it."""
        place = self._place(request)
        head, rest = sliced(place, report, expires_at=request.expires_at)
        answered = {"status": "answered", "report": head["body"], "slices": head["slices"], "tx": token}
        return [Update(place, set=answered, conditions=_ASKED), *rest]

    def collect(self, request: ResyncRequest) -> dict[str, Any] | None:
        """Read the report and remove it with its request; None if there is none yet."""
        place = self._place(request)
        head = self._store.get(place)
        if head is None or head["status"] != "answered":
            return None
        report: dict[str, Any] = read_slices(self._store, place, head, "report")
        self.withdraw(request, head["slices"])
        return report

    def withdraw(self, request: ResyncRequest, slices: int = 1) -> None:
        """Remove a request, once its answer is collected, or when the caller waits no longer: its slices, its head, then its progress. Without
        the head no master can write more progress.

        ``slices``: of the report, if it is answered.
        """
        for number in reversed(range(slices)):
            self._store.write(Delete(slice_place(self._place(request), number)))
        if request.is_normal:
            self._store.write(self.delete_progress(request))

    def delete_request(self, request: ResyncRequest, *, asked: bool = False) -> Delete:
        """Return the write that removes the request itself. ``asked``: it is refused if the caller no longer waits."""
        return Delete(self._place(request), _ASKED if asked else ())

    def delete_progress(self, request: ResyncRequest) -> Delete:
        """Return the write that removes what says how far the resync is. Parts stay until they expire."""
        return Delete(self._underway_place(request))

    # --- results ---

    def put_result(
        self, request: ResyncRequest, figures: Mapping[str, Any], short: object, now: float, token: str
    ) -> list[Action]:
        """Return the writes that keep the result of a resync that has ended.

        Args:
            figures: clusters, errors (clusters that could not be resynchronised), differences, session. Added here: by (schedule or
                person), at (when it was asked for), ended_at, seconds, cluster, forced.
            short: the report, cut to what people need.
        """
        place = Key(CONTROL, self._results, request.id)
        expires_at, asked_at = int(now) + self._retention_seconds, request.at_ms / 1000
        head, rest = sliced(place, short, expires_at=expires_at)
        times = {"at": timestamp(asked_at), "ended_at": timestamp(now), "seconds": max(0, round(now - asked_at))}
        fields = {"by": "schedule" if request.scheduled else "person", **times, **figures, **head}
        fields |= {"cluster": request.cluster, "forced": request.force, "tx": token, "expires_at": expires_at}
        return [put(place, **fields), *rest]

    # --- progress ---

    def put_part(self, request: ResyncRequest, cluster: str, part: object, token: str) -> list[Action]:
        """Return the writes that keep what is done of one cluster. For a transaction with ``put_progress``, which is refused once nobody waits."""
        place = Key(CONTROL, _parts_of(request), cluster)
        expires_at = request.expires_at + _PARTS_STAY_SECONDS
        head, rest = sliced(place, part, expires_at=expires_at)
        return [put(place, **head, tx=token, expires_at=expires_at), *rest]

    def put_progress(
        self, request: ResyncRequest, session: str, clusters: int, done: int, now: float, token: str
    ) -> list[Action]:
        """Return the writes that say how far a resync is: so many ``clusters``, of which so many are ``done``. The next session goes on from there.

        They are refused once the request is answered, or its caller has withdrawn it. Progress expires later than the request, so that a resync
        that nobody ends does not vanish.
        """
        fields = {"cluster": request.cluster, "at_ms": request.at_ms, "session": session, "clusters": clusters}
        fields |= {"done": done, "tx": token, "expires_at": int(now) + self._retention_seconds}
        fields |= {"scheduled": True} if request.scheduled else {}
        return [Check(self._place(request), _ASKED), put(self._underway_place(request), **fields)]

    def parts(self, request: ResyncRequest) -> dict[str, Any]:
        """By cluster, what is done. A part of which slices are missing is not there: DynamoDB drops each item by itself."""
        items = [item for item in self._store.query(CONTROL, _parts_of(request)) if "slices" in item]
        found: dict[str, Any] = {}
        for item in items:
            with suppress(KeyError):
                found[item["sk"]] = read_slices(self._store, place_of(CONTROL, item), item)
        return found

    def _place(self, request: ResyncRequest) -> Key:
        return Key(CONTROL, self._partition, request.id)

    def _underway_place(self, request: ResyncRequest) -> Key:
        return Key(CONTROL, self._partition, f"{request.id}{UNDERWAY}")


def _parts_of(request: ResyncRequest) -> str:
    return f"resync-parts#{request.id}"
