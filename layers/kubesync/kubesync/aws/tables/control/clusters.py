"""The registry: all clusters, and how each one is synchronised.

control table
partition    sort          holds
---------    ----          -----
clusters     <name>        document, revision (+1 at each change), allowed_deletions (only where a person has confirmed some)
"""

import logging
import re
from collections.abc import Collection, Iterator, Sequence
from enum import StrEnum
from itertools import accumulate
from typing import Annotated, Final, Self
from urllib.parse import urlsplit

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    PlainSerializer,
    PlainValidator,
    StringConstraints,
    ValidationError,
    model_validator,
)

from kubesync.aws.dynamodb.store import CONTROL, STATE, Delete, Equals, Item, Key, Store
from kubesync.aws.tables.items import Table, readable
from kubesync.domain.dns.addresses import parse_network
from kubesync.domain.dns.annotations import MAX_TTL_SECONDS, PREFIXES
from kubesync.domain.dns.names import FIELDS
from kubesync.domain.dns.permissions import (
    NAMES_PER_NAMESPACE,
    NAMES_PER_SERVICE,
    SETS_PER_NAMESPACE,
    WAITS_PER_NAMESPACE,
)
from kubesync.domain.dns.records import Zone
from kubesync.domain.dns.routing.reading import routing_of_cluster
from kubesync.domain.errors import NewerSchemaError
from kubesync.domain.objects import Resource
from kubesync.domain.plan import Policy
from kubesync.domain.sources.port import Kind
from kubesync.domain.sources.registry import IDENTITY, KINDS
from kubesync.domain.sources.scope import Scope

# A child of the functions' Logger, by its name. Commands import this file too: Powertools would be a tenth of their start.
logger = logging.getLogger(f"kubesync.{__name__}")

PARTITION: Final = "clusters"
MOST_THREADS: Final = 900
"""One session serves clusters until their threads are so many. Lambda allows 1,024 threads and as many file descriptors.
https://docs.aws.amazon.com/lambda/latest/dg/gettingstarted-limits.html
"""
_THREADS: Final = 3  # of a cluster with Services alone
_NAME = re.compile(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?")
LABELS = r"^[a-z0-9_]([-a-z0-9_]{0,61}[a-z0-9_])?(\.[a-z0-9_]([-a-z0-9_]{0,61}[a-z0-9_])?)*$"

OWN_PREFIX: Final = "kubesync.io"
"""The prefix of kubesync's own annotations, which every cluster reads."""
MAX_PREFIX_CHARACTERS: Final = 254
"""A DNS name and a slash (Kubernetes, "Annotations")."""

USUAL_SOURCES: Final = ("service",)
"""What releases read that know no other source."""
ENDPOINTS_SOURCES: Final = frozenset({Resource.ENDPOINTS, Resource.ENDPOINTSLICES})


def _endpoints_source(given: object) -> Resource:
    """Read the field ``endpoints_source``. Raises ValueError, as pydantic wants it."""
    if given not in ENDPOINTS_SOURCES:
        raise ValueError("endpoints_source is endpoints or endpointslices")
    return Resource(str(given))


_PATTERNS_IN_WORDS: Final = {
    "domain": "labels of lower-case letters, digits, hyphens and underscores, with single dots between them",
    "name": "lower-case letters, digits and hyphens, at most 63",
}


class OnDelete(StrEnum):
    """What happens to a cluster's records and upstreams when it is removed."""

    REMOVE = "remove"
    RETAIN = "retain"


class ZoneReference(BaseModel):
    """A hosted zone as registered. ``zone_access`` says how to reach it, independently of clusters."""

    model_config = ConfigDict(frozen=True, extra="forbid")
    id: Annotated[str, StringConstraints(pattern=r"^Z[A-Z0-9]{1,31}$")]
    name: Annotated[str, StringConstraints(pattern=LABELS)]
    private: bool = False

    @property
    def zone(self) -> Zone:
        """The zone as a domain value."""
        return Zone(self.id, self.name, self.private)


class ClusterConfig(BaseModel):
    """One registered cluster. Holds references to secrets, never secrets (I8)."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    name: Annotated[str, StringConstraints(pattern=r"^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$")]
    server: str = ""
    domain: Annotated[str, StringConstraints(pattern=LABELS)]
    zones: tuple[ZoneReference, ...] = Field(min_length=1)
    token: str | None = None
    ca_pem: str | None = None
    ca: str | None = None
    client_certificate: str | None = None
    client_key: str | None = None
    insecure_skip_tls_verify: bool = False
    eks: str | None = None
    role_arn: str | None = None
    external_id: str | None = None
    aws_identity: str | None = None
    kubeconfig: str | None = None
    context: str | None = None
    namespaces: tuple[str, ...] = ()
    exclude_namespaces: tuple[str, ...] = ()
    selector: str = ""
    select_endpoints: bool = False
    opt_in: bool = False
    annotation_prefix: Annotated[str, StringConstraints(max_length=MAX_PREFIX_CHARACTERS)] | None = None
    # What is read of it, by the options of ``domain.sources``.
    sources: tuple[str, ...] = USUAL_SOURCES
    endpoints_source: Annotated[Resource, PlainValidator(_endpoints_source), PlainSerializer(str)] = (
        Resource.ENDPOINTSLICES
    )
    ttl: int = Field(default=30, ge=1, le=MAX_TTL_SECONDS)
    template: str = "{service}.{namespace}.svc.{domain}"
    srv: bool = True
    policy: Policy = Policy.SYNC
    on_delete: OnDelete = OnDelete.REMOVE
    load_balancer_cluster_ips: bool = False
    load_balancer_alias: bool = False
    write_events: bool = False
    # Without a domain filter: any name of its zones. Such a cluster was registered before there were rules of names.
    domain_filter: tuple[str, ...] = ()
    exclude_domains: tuple[str, ...] = ()
    namespace_domains: tuple[str, ...] = ()  # each NAMESPACE=DOMAIN
    allow_wildcards: bool = False
    allow_apex: bool = False
    allow_underscores: bool = False
    max_names_per_service: int = Field(default=NAMES_PER_SERVICE, ge=0)
    max_names_per_namespace: int = Field(default=NAMES_PER_NAMESPACE, ge=0)
    max_waits_per_namespace: int = Field(default=WAITS_PER_NAMESPACE, ge=0)
    max_record_sets_per_namespace: int = Field(default=SETS_PER_NAMESPACE, ge=0)
    # Commands store other values than these for a new cluster: see ``registration.name_rules``.
    reserve_domain: bool = False
    max_ttl: int = Field(default=MAX_TTL_SECONDS, ge=1, le=MAX_TTL_SECONDS)
    endpoint_cidrs: tuple[str, ...] = ()
    target_net_filter: tuple[str, ...] = ()
    exclude_target_net: tuple[str, ...] = ()
    ingress_class: tuple[str, ...] = ()
    ignore_ingress_rules_spec: bool = False
    ignore_ingress_tls_spec: bool = False
    # A configuration with this one has a schema version that older releases leave out (ADR 0053).
    routing: str = ""
    health_check: str = ""
    shard: str = "0"
    disabled: bool = False
    revision: int = 0
    deleting: bool = False
    # How many deletions of record sets a person has confirmed with this revision. It stands beside the document, not in it.
    allowed_deletions: int = Field(default=0, exclude=True)

    @model_validator(mode="before")
    @classmethod
    def _with_namespaces(cls, given: object) -> object:
        """Convert documents of older releases, which have at most one ``namespace``."""
        if not isinstance(given, dict) or "namespace" not in given:
            return given
        only = given["namespace"]
        rest = {name: value for name, value in given.items() if name != "namespace"}
        return {"namespaces": (only,) if only is not None else (), **rest}

    @model_validator(mode="after")
    def _check(self) -> Self:
        if wrong := list(self._mistakes()):
            raise ValueError("\n".join(wrong))  # pydantic takes one error; see ``explain_all``
        return self

    def _mistakes(self) -> Iterator[str]:
        """What is wrong with the configuration, beyond the types of its fields: one line for a person each."""
        if not self.server and not self.kubeconfig:
            yield "give the API server's address (--server) or a kubeconfig (--kubeconfig)"
        elif self.server and (no_server := _why_no_server(self.server)):
            yield no_server
        known = {kind.option for kind in KINDS.values() if not kind.shared}
        if not self.sources or not known.issuperset(self.sources):
            yield f"--sources is a list of {', '.join(sorted(known))}, such as service,ingress"
        if no_template := _why_no_template(self.template):
            yield f"the template may hold {{service}}, {{namespace}}, {{domain}} and {{cluster}} only: {no_template}"
        try:
            routing_of_cluster(self.routing, self.health_check, self.name)
        except ValueError as wrong:
            yield str(wrong)
        for name in ("endpoint_cidrs", "target_net_filter", "exclude_target_net"):
            for text in getattr(self, name):
                if parse_network(text) is None:
                    yield f"--{name.replace('_', '-')} {text!r} is not a network: give networks such as 10.0.0.0/8,2001:db8::/32"
        if self.annotation_prefix is not None:
            domain, slash, rest = self.annotation_prefix.partition("/")
            if not slash or rest or not re.fullmatch(LABELS, domain) or domain == OWN_PREFIX:
                yield (
                    f"the annotation prefix {self.annotation_prefix!r} must be a domain and a slash, such as "
                    f"internal.example.com/, and not {OWN_PREFIX}/"
                )

    @property
    def kinds(self) -> tuple[Kind, ...]:
        """The kinds of objects that have keys of their own."""
        return tuple(kind for kind in KINDS.values() if kind.option in self.sources)

    @property
    def possible_resources(self) -> tuple[Resource, ...]:
        """What its listeners read, or would read with the other source of endpoints: of these a session may have left items in the tables."""
        read = (*self.kinds, *(KINDS[name] for kind in self.kinds for name in kind.reads))
        return tuple(dict.fromkeys(resource for kind in read for resource in kind.resources))

    @property
    def resources(self) -> tuple[Resource, ...]:
        """What its listeners read, in this order. Of the two resources that hold endpoints only the configured one."""
        others = ENDPOINTS_SOURCES - {self.endpoints_source}
        return tuple(resource for resource in self.possible_resources if resource not in others)

    @property
    def threads(self) -> int:
        """How many threads it takes: its own, and one for each listener."""
        return 1 + len(self.resources)

    @property
    def shows_identity(self) -> bool:
        """Whether some listener's list holds Service default/kubernetes, whose uid identifies the cluster (I5). If not, the cluster is asked for it
        by itself (``Connector.identity``)."""
        return self.lists_services and self.scope.shows_identity

    @property
    def lists_services(self) -> bool:
        """Whether a listener reads the resource of default/kubernetes. Without one, the right to get that object is enough."""
        return IDENTITY[0] in self.resources

    @property
    def scope(self) -> Scope:
        """The part of the cluster that its listeners see."""
        return Scope(
            self.namespaces, self.exclude_namespaces, self.selector, self.select_endpoints, self.annotation_prefixes
        )

    @property
    def annotation_prefixes(self) -> tuple[str, ...]:
        """The prefixes of the annotations of external-dns that this cluster reads; the first wins."""
        return PREFIXES if self.annotation_prefix is None else (self.annotation_prefix,)

    @property
    def paused(self) -> bool:
        """Whether nobody watches the cluster, and its record sets and upstreams stay unchanged."""
        return self.disabled and not self.deleting


def retains(config: ClusterConfig) -> bool:
    """Whether removal leaves record sets and upstreams unchanged. A policy that forbids deletions also forbids these."""
    return config.on_delete is OnDelete.RETAIN or config.policy is not Policy.SYNC


def _why_no_server(server: str) -> str:
    """Why it is no address of an API server; empty if it is one."""
    try:
        parts = urlsplit(server)
    except ValueError:  # an unclosed bracket, as of an IPv6 address: https://[::1
        parts = urlsplit("")
    if parts.scheme not in ("http", "https") or not parts.hostname:
        return f"server {server!r} is not a URL such as https://host:6443"
    if parts.username or parts.password or parts.query or parts.fragment:
        return "the server's URL must hold no credentials, query or fragment"
    if parts.scheme == "http" and parts.hostname not in ("127.0.0.1", "localhost", "::1"):
        return "http:// is allowed on loopback only: use https://"
    return ""


def _why_no_template(template: str) -> str:
    """The first part of the template that is not a known field, and where; empty if there is none. Formats (``{service:>9}``) are errors."""
    for found in re.finditer(r"\{([^{}]*)\}|[{}]", template):
        field, place = found[1], f"at character {found.start() + 1} of {template!r}"
        if field is None:
            return f"'{{' {place} is not closed" if found[0] == "{" else f"'}}' {place} closes nothing"
        if field not in FIELDS:
            return f"{found[0]} {place} is not one of them"
    return ""


class ClusterTable(Table):
    """Reads the registry. People change it, with the command; a master deletes a configuration when nothing of the cluster is left."""

    def read(self, shard: str | None = None) -> dict[str, ClusterConfig | None]:
        """Every registered cluster by name, including those being deleted. None in place of a configuration: this release cannot read it, for
        example because a newer one wrote it. That is logged; other clusters go on (I4).

        ``shard``: only the clusters of this one, and all that cannot be read, since their shard is not known.
        """
        found: dict[str, ClusterConfig | None] = {}

        def left_alone(newer: NewerSchemaError) -> None:
            logger.error("configuration cannot be read", extra={"cluster": newer.sort, "reason": str(newer)})
            found[newer.sort] = None

        for item in readable(iter(self._store.query(CONTROL, PARTITION)), left_alone):
            name = item["sk"]
            try:
                config = parse(item)
            except ValidationError as invalid:
                logger.error("configuration cannot be read", extra={"cluster": name, "reason": explain(invalid)})
                found[name] = None
                continue
            if shard is None or config.shard == shard:
                found[name] = config
        return found

    @staticmethod
    def forget(config: ClusterConfig) -> Delete:
        """Delete a configuration: the last step of a cluster's removal. Refused if somebody has changed it since it was read."""
        return Delete(Key(CONTROL, PARTITION, config.name), (Equals("revision", config.revision),))


def served_at_once(configs: Sequence[ClusterConfig | None]) -> int:
    """How many of these clusters, from the first on, one session serves. It takes one more as long as those before have fewer than
    ``MOST_THREADS`` threads, so the last one may go beyond. None: a configuration that cannot be read, which counts as a cluster of Services."""
    # For each cluster, how many threads all clusters before it have. One more number, at the end, belongs to no cluster.
    of_those_before = accumulate((_THREADS if config is None else config.threads for config in configs), initial=0)
    return sum(threads < MOST_THREADS for threads, _ in zip(of_those_before, configs, strict=False))


def valid_cluster_name(name: str) -> bool:
    """Whether it is a DNS label: the name becomes part of keys and messages."""
    return _NAME.fullmatch(name) is not None


def explain(invalid: ValidationError) -> str:
    """The first validation error as one line for a person."""
    return explain_all(invalid)[0]


def explain_all(invalid: ValidationError) -> list[str]:
    """Every validation error as a line for a person."""
    found: list[str] = []
    for each in invalid.errors():
        place = ".".join(str(p) for p in each["loc"])
        text = each["msg"].removeprefix("Value error, ")
        if each["type"] == "string_pattern_mismatch":
            text = f"{each['input']!r} is not valid: {_PATTERNS_IN_WORDS.get(place, 'see docs/configuration.md')}"
        found += [f"{place}: {line}" if place else line for line in text.split("\n")]
    return found


def parse(item: Item) -> ClusterConfig:
    """The configuration that an item holds. Raises ValidationError."""
    config = ClusterConfig.model_validate_json(item["document"])
    allowed = item.get("allowed_deletions", 0)
    return config.model_copy(update={"revision": item["revision"], "allowed_deletions": allowed})


def lost_clusters(store: Store, registered: Collection[str], known: int | None) -> tuple[str, ...]:
    """The names of lost clusters: their configurations are gone, although nobody removed these clusters. To look costs a scan, so it looks only
    if the registry has got smaller, or is empty (I7).

    clusters in the registry                    read besides                result
    ------------------------                    ------------                ------
    of the shard, at least one, and as many     nothing                     none is lost
      as a session saw last
    fewer, or it is not known how many          the control table           clusters that have listener items and no configuration: a removal
                                                                            deletes both. A fence alone means nothing: it stays after a removal
    none in any shard, and no listener items    one item of the             one empty name if there is an item: some cluster is lost, but
                                                state table                 nobody knows its name

    Args:
        registered: of this shard, as just read.
        known: how many the last session saw there, see ``Lease.clusters``.
    """
    if known is not None and len(registered) >= max(known, 1):
        return ()
    names = ClusterTable(store).read().keys()
    items = readable(store.scan(CONTROL), lambda _newer: None)
    listened = (i["pk"] for i in items if i["sk"].startswith("checkpoint#"))
    found = {partition.removeprefix("cluster#") for partition in listened} - names
    if not found and not names:
        newer: list[NewerSchemaError] = []  # an item that only a newer release understands is one too
        any_item = any(readable(store.scan(STATE, limit=1), newer.append))
        return ("",) if any_item or newer else ()
    return tuple(sorted(found))
