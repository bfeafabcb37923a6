"""Listener items: checkpoint, errors and how the last session of a listener ended.

control table
partition             sort                  holds
---------             ----                  -----
cluster#<cluster>     checkpoint#<res.>     resource_version, generation, revision, server, rules, version, works_since, selector, tx;
                                            believed, limit, pending and holding if a list lacked objects (``domain.merge.Believed``);
                                            unwanted if a changed configuration took record sets away
cluster#<cluster>     errors#<res.>         counts per code, the last error, how it ended
cluster#<cluster>     identity              uid of Service default/kubernetes, as first seen
cluster#<cluster>     credentials           revision, ends (by what ends), tx; only if an end was ever known
cluster#<cluster>     planning              well_of, under_way, deaths, tx; only if a key was ever large (``domain.large_keys``)

Times that are numbers are milliseconds since 1970; those in ``ends`` are seconds, those in ``believed`` and ``pending`` are minutes.

A *checkpoint* is the version up to which everything that a listener read is durable: the next session reads on from there.
"""

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field
from datetime import datetime

from kubesync.aws.dynamodb.store import CONTROL, Action, Delete, Item, Key, Put
from kubesync.aws.tables.items import Table, attributes_of, place_of, put, unchanged, update
from kubesync.aws.tables.upstreams import timestamp
from kubesync.domain.credential_ends import Credential
from kubesync.domain.errors import ErrorCode
from kubesync.domain.large_keys import Deaths, LargeKeys
from kubesync.domain.merge import Believed, Pending
from kubesync.domain.objects import Resource


@dataclass(frozen=True, slots=True)
class Basis:
    """The conditions under which a checkpoint was made. It is valid only under the same ones: else the listener lists again.

    ``revision``: of the cluster's configuration. ``server``: the address of its API server. ``rules``: the version of the rules by which this
    release plans.
    """

    revision: int
    server: str
    rules: int


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """Everything of one listener up to ``resource_version`` is durable. ``version`` is the version of its item.

    ``works_since`` (epoch seconds, 0: not known) is stored along, for people; a change of it alone causes no write (I6).
    ``selector``: the label selector of the list. Objects outside another selector do not count as missing. ``believed``: how many deletions were
    believed within the last hour because a list lacked the objects (I5). ``unwanted``: how many record sets its lists have taken away because
    this basis does not want them.
    """

    resource_version: int
    generation: int
    basis: Basis
    version: int = 0
    works_since: float = field(default=0.0, compare=False)
    selector: str = ""
    believed: Believed = field(default_factory=Believed)
    unwanted: int = field(default=0, compare=False)


@dataclass(frozen=True, slots=True)
class ListenerErrors:
    """The errors of a listener so far. ``counts`` by error key. ``last`` and ``ended`` have code, key, message, at and session.
    ``last`` may have an HTTP status; ``ended`` has ``works_since`` if the listener worked when it ended. Both have ``failing_since``
    if it did not work for some time before.
    """

    counts: Mapping[str, int] = field(default_factory=dict)
    last: Mapping[str, object] | None = None
    ended: Mapping[str, object] | None = None


@dataclass(frozen=True, slots=True)
class StoredCredentials:
    """When a cluster's credentials end (epoch seconds, whole), as seen under this revision of its configuration."""

    revision: int
    ends: Mapping[Credential, float]


@dataclass(frozen=True, slots=True)
class Remembered:
    """What the tables hold of a cluster's listeners: a session that begins to serve the cluster reads it first.

    ``checkpoints``: valid or not. ``identity``: the uid of its Service default/kubernetes, as first seen; None: never seen. ``credentials``: when
    they end. ``failing``: listeners that did not work when the last session ended or died, and since when (epoch seconds). ``large``: see
    ``domain.large_keys``.
    """

    checkpoints: Mapping[Resource, Checkpoint]
    identity: str | None
    credentials: StoredCredentials | None = None
    failing: Mapping[Resource, float] = field(default_factory=dict)
    large: LargeKeys = field(default_factory=LargeKeys)


def _checkpoint(item: Item) -> Checkpoint:
    """The checkpoint that an item holds: the inverse of ``ListenerTable.put_checkpoint``, which leaves out attributes without a value."""
    known = attributes_of(Checkpoint, item)
    known |= {"basis": Basis(**attributes_of(Basis, item)), "works_since": item.get("works_since", 0) / 1000}
    believed = Believed(
        by_minute=dict(item.get("believed", ())),
        pending=Pending(*item["pending"]) if item.get("pending") else None,
        holding=item.get("holding", False),
        limit=item.get("limit", 0),
    )
    return Checkpoint(**known | {"believed": believed})


def errors_of(item: Item) -> ListenerErrors:
    """The errors that an item holds."""
    counts = {name.removeprefix("count_"): value for name, value in item.items() if name.startswith("count_")}
    return ListenerErrors(counts, item.get("last"), item.get("ended"))


def works_since(checkpoint: Checkpoint | None, errors: ListenerErrors | None) -> str:
    """Since when a listener works, for people: the later of the times in its checkpoint and in the entry of its end. Empty: not known.

    Both are texts of ``timestamp``, so text order is time order.
    """
    stored = timestamp(checkpoint.works_since) if checkpoint is not None and checkpoint.works_since else ""
    ended = errors.ended if errors is not None else None
    return max(stored, str((ended or {}).get("works_since") or ""))


def failing_since(checkpoint: Checkpoint | None, errors: ListenerErrors | None) -> str:
    """Since when a listener does not work, as its last entry says it. Empty: it works, or that is not known.

    All times have one format, so text order is time order. If it has worked later than the entry says, it works.
    """
    entries = [entry for entry in (errors.last, errors.ended) if entry] if errors is not None else []
    newest = max(entries, key=lambda entry: str(entry["at"]), default={})
    since = str(newest.get("failing_since") or "")
    return since if works_since(checkpoint, errors) < since else ""


def credentials_of(item: Item | None) -> StoredCredentials | None:
    """The ends that an item holds. None: no end was ever known."""
    if item is None:
        return None
    # A newer release may know more of them.
    known = {Credential(what): float(end) for what, end in item["ends"].items() if what in Credential}
    return StoredCredentials(item["revision"], known)


def _large(item: Item | None) -> LargeKeys:
    """The memory of large keys that an item holds: the inverse of ``put_large``. None: there is no item, as in a cluster without large keys.

    A key is large if planning it may end the session. So sessions remember, by namespace, which size was planned well (``well_of``) and how many
    sessions died of a size (``deaths``), and which key is being planned (``under_way``).
    """
    if item is None:
        return LargeKeys()
    under_way = tuple(item["under_way"]) or None
    deaths = {of: Deaths(size, count, retry_at=at / 1000) for of, (size, count, at) in item["deaths"].items()}
    return LargeKeys(well=item.get("well_of", {}), under_way=under_way, deaths=deaths)


def _remembered(cluster: str, resources: Iterable[Resource], found: Mapping[Key, Item]) -> Remembered:
    """What the items in ``found`` say of one cluster, which may read these resources."""
    failing: dict[Resource, float] = {}
    checkpoints: dict[Resource, Checkpoint] = {}
    for resource in resources:
        if (item := found.get(_place(cluster, f"checkpoint#{resource}"))) is not None:
            checkpoints[resource] = _checkpoint(item)
        errors = found.get(_place(cluster, f"errors#{resource}"))
        if errors is not None and (since := failing_since(checkpoints.get(resource), errors_of(errors))):
            failing[resource] = datetime.fromisoformat(since).timestamp()
    identity = found.get(_place(cluster, "identity"))
    return Remembered(
        checkpoints,
        identity=None if identity is None else identity["uid"],
        credentials=credentials_of(found.get(_place(cluster, "credentials"))),
        failing=failing,
        large=_large(found.get(_place(cluster, "planning"))),
    )


def _place(cluster: str, sort: str) -> Key:
    return Key(CONTROL, f"cluster#{cluster}", sort)


class ListenerTable(Table):
    """Reads listener items and builds their writes."""

    def checkpoints(self, cluster: str) -> dict[Resource, Checkpoint]:
        """All checkpoints of a cluster, valid or not."""
        found = self._store.query(CONTROL, f"cluster#{cluster}", prefix="checkpoint#")
        return {Resource(item["sk"].removeprefix("checkpoint#")): _checkpoint(item) for item in found}

    def remembered(self, clusters: Mapping[str, Iterable[Resource]]) -> dict[str, Remembered]:
        """What a take-over reads first, for all clusters. One request is enough for 11 of them that read Services alone.

        ``clusters``: their names, and the resources that they may read.
        """
        resources = {name: tuple(of_cluster) for name, of_cluster in clusters.items()}
        places: list[Key] = []
        for name, of_cluster in resources.items():
            places += [
                _place(name, f"{kind}#{resource}") for kind in ("checkpoint", "errors") for resource in of_cluster
            ]
            places += [_place(name, sort) for sort in ("identity", "credentials", "planning")]
        found = self._store.batch_get(places)
        return {name: _remembered(name, of_cluster, found) for name, of_cluster in resources.items()}

    @staticmethod
    def put_checkpoint(cluster: str, resource: Resource, checkpoint: Checkpoint, token: str) -> Action:
        """Replace a checkpoint. ``checkpoint.version`` is the new version; the item must have the one before it."""
        fields = {**asdict(checkpoint.basis), "tx": token, "works_since": round(checkpoint.works_since * 1000)}
        fields |= {name: getattr(checkpoint, name) for name in ("resource_version", "generation", "version")}
        believed = checkpoint.believed
        # Most checkpoints have none of these. What is empty, False or 0 is left out. ``believed`` in the item: [minute since 1970, deletions] each.
        where_there_is_some = {
            "selector": checkpoint.selector,
            "unwanted": checkpoint.unwanted,
            "believed": [list(each) for each in sorted(believed.by_minute.items())],
            "pending": list(believed.pending or ()),
            "holding": believed.holding,
        }
        fields |= {name: value for name, value in where_there_is_some.items() if value}
        if believed.by_minute or believed.pending:  # the limit, for people, says something only beside deletions
            fields["limit"] = believed.limit
        return put(_place(cluster, f"checkpoint#{resource}"), unchanged(checkpoint.version - 1), **fields)

    @staticmethod
    def put_identity(cluster: str, uid: str) -> Action:
        """Remember which cluster this is: ``uid`` of its Service default/kubernetes."""
        return put(_place(cluster, "identity"), uid=uid)

    @staticmethod
    def put_credentials(cluster: str, credentials: StoredCredentials, token: str) -> Put:
        """Replace when the cluster's credentials end."""
        ends = {what.value: int(end) for what, end in credentials.ends.items()}
        return put(_place(cluster, "credentials"), tx=token, revision=credentials.revision, ends=ends)

    @staticmethod
    def put_large(cluster: str, large: LargeKeys, token: str) -> Action:
        """Replace what is remembered of the cluster's large keys (``_large`` says what that is)."""
        deaths = {of: [found.size, found.count, round(found.retry_at * 1000)] for of, found in large.deaths.items()}
        # An older release reads ``well``: one size for all namespaces, up to which it need not write before it plans a key. 0 makes it always write.
        well = {"well": 0, "well_of": dict(large.well)}
        under_way = list(large.under_way or ())
        return put(_place(cluster, "planning"), tx=token, **well, under_way=under_way, deaths=deaths)

    @staticmethod
    def count_error(
        cluster: str, resource: Resource, code: ErrorCode, fields: Mapping[str, object], at: str, session: str
    ) -> Action:
        """Count one more error of this code. Codes 1 to 5 (``MAX_RUNTIME``) say how a listener ended. So they do not hide the last real error, they
        have an attribute of their own.

        ``at``: when, as ``timestamp`` writes it. ``fields``: code, key and message, and the HTTP status if there was one.
        """
        entry = {**fields, "at": at, "session": session}
        changed = {"ended" if code <= ErrorCode.MAX_RUNTIME else "last": entry}
        return update(_place(cluster, f"errors#{resource}"), {f"count_{code.key}": 1}, **changed)

    def delete_all(self, cluster: str) -> list[Action]:
        """Return the writes that delete all listener items of a cluster. The fence stays: a master that was paused must still be refused."""
        return [
            Delete(place_of(CONTROL, item))
            for item in self._store.query(CONTROL, f"cluster#{cluster}")
            if item["sk"] != "fence"
        ]
