"""The registry: which clusters there are, and how each is to be synchronised.

control table
partition    sort          holds
---------    ----          -----
clusters     <name>        document, revision (+1 at each change), deleting, shard
"""

from __future__ import annotations

import re
from enum import StrEnum
from string import Formatter
from typing import Annotated, Final, Self, cast
from urllib.parse import urlsplit

from aws_lambda_powertools import Logger
from pydantic import BaseModel, ConfigDict, Field, StringConstraints, ValidationError, model_validator

from kubesync.aws.state_codec import SCHEMA
from kubesync.aws.store import CONTROL, Absent, Delete, Equals, Item, Key, Put, Store
from kubesync.domain.errors import ConditionFailedError, UsageError
from kubesync.domain.objects import Resource
from kubesync.domain.plan import Policy

logger = Logger(service="kubesync", child=True)

_PARTITION: Final = "clusters"
_TEMPLATE_FIELDS: Final = frozenset({"service", "namespace", "domain", "cluster"})
_NAME = re.compile(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?")
_LABELS = r"^[a-z0-9_]([-a-z0-9_]{0,61}[a-z0-9_])?(\.[a-z0-9_]([-a-z0-9_]{0,61}[a-z0-9_])?)*$"


_PATTERNS_IN_WORDS: Final = {
    "domain": "labels of lower-case letters, digits, hyphens and underscores, with single dots between them",
    "name": "lower-case letters, digits and hyphens, at most 63",
}


class OnDelete(StrEnum):
    """What happens to a cluster's records and upstreams when it is removed."""

    REMOVE = "remove"
    RETAIN = "retain"


class ZoneReference(BaseModel):
    """A hosted zone as registered."""

    model_config = ConfigDict(frozen=True, extra="forbid")
    id: Annotated[str, StringConstraints(pattern=r"^Z[A-Z0-9]{1,31}$")]
    name: Annotated[str, StringConstraints(pattern=_LABELS)]
    private: bool = False


class ClusterConfig(BaseModel):
    """One registered cluster. Holds references to secrets, never secrets (I8)."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    name: Annotated[str, StringConstraints(pattern=r"^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$")]
    server: str = ""
    domain: Annotated[str, StringConstraints(pattern=_LABELS)]
    zones: tuple[ZoneReference, ...] = Field(min_length=1)
    token: str | None = None
    ca_pem: str | None = None
    insecure_skip_tls_verify: bool = False
    eks: str | None = None
    kubeconfig: str | None = None
    context: str | None = None
    namespace: str | None = None
    endpoints_source: Resource = Resource.ENDPOINTSLICES
    ttl: int = Field(default=30, ge=1, le=2147483647)
    template: str = "{service}.{namespace}.svc.{domain}"
    srv: bool = True
    policy: Policy = Policy.SYNC
    on_delete: OnDelete = OnDelete.REMOVE
    load_balancer_cluster_ips: bool = False
    load_balancer_alias: bool = False
    shard: str = "0"
    revision: int = 0
    deleting: bool = False

    @model_validator(mode="after")
    def _check(self) -> Self:
        if not self.server and not self.kubeconfig:
            raise ValueError("give the API server's address (--server) or a kubeconfig (--kubeconfig)")
        if self.server:
            parts = urlsplit(self.server)
            if parts.scheme not in ("http", "https") or not parts.hostname:
                raise ValueError(f"server {self.server!r} is not a URL such as https://host:6443")
            if parts.username or parts.password or parts.query or parts.fragment:
                raise ValueError("the server's URL must hold no credentials, query or fragment")
            if parts.scheme == "http" and parts.hostname not in ("127.0.0.1", "localhost", "::1"):
                raise ValueError("http:// is allowed on loopback only: use https://")
        if self.endpoints_source is Resource.SERVICES:
            raise ValueError("endpoints_source is endpoints or endpointslices")
        if not _plain_template(self.template):
            raise ValueError("the template may hold {service}, {namespace}, {domain} and {cluster} only")
        return self


def _plain_template(template: str) -> bool:
    """Whether it holds known fields without attributes, conversions or formats (``{service:>999999999}``)."""
    try:
        fields = [field for _, *field in Formatter().parse(template) if field[0] is not None]
    except ValueError:
        return False
    return all(name in _TEMPLATE_FIELDS and not spec and not conversion for name, spec, conversion in fields)


class ClusterTable:
    """Reads and changes the registry. Changes are conditional on the revision as read."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def all(self, shard: str | None = None) -> list[ClusterConfig]:
        """Every registered cluster (of a shard), those that are being deleted included.

        One that cannot be read, as after a newer release wrote it, is left out and logged: it stops no other (I4).
        """
        found = self.read(shard)
        return [config for config in found.values() if config is not None]

    def read(self, shard: str | None = None) -> dict[str, ClusterConfig | None]:
        """Every registered cluster (of a shard) by name; None: it is registered, but cannot be read by this release."""
        found: dict[str, ClusterConfig | None] = {}
        for item in self._store.query(CONTROL, _PARTITION):
            name = cast(str, item["sk"])
            try:
                config = _parse(item)
            except ValidationError as invalid:
                logger.error("configuration cannot be read", cluster=name, reason=explain(invalid))
                found[name] = None
                continue
            if shard is None or config.shard == shard:
                found[name] = config
        return found

    def get(self, name: str) -> ClusterConfig | None:
        item = self._store.get(Key(CONTROL, _PARTITION, name))
        return None if item is None else _parse(item)

    def put(self, config: ClusterConfig) -> ClusterConfig:
        """Register a cluster or replace its configuration; returns it with its new revision.

        Raises:
            UsageError: somebody else changed it meanwhile.
        """
        stored = config.model_copy(update={"revision": config.revision + 1})
        item: Item = {
            "v": SCHEMA,
            "revision": stored.revision,
            "document": stored.model_dump_json(exclude_defaults=True),
        }
        guard = (Absent(),) if config.revision == 0 else (Equals("revision", config.revision),)
        try:
            self._store.write(Put(Key(CONTROL, _PARTITION, config.name), item, guard))
        except ConditionFailedError as refused:
            hint = "is already registered" if config.revision == 0 else "was changed by somebody else: try again"
            raise UsageError(f"cluster {config.name} {hint}") from refused
        return stored

    @staticmethod
    def forget(config: ClusterConfig) -> Delete:
        """The last step of a deletion."""
        return Delete(Key(CONTROL, _PARTITION, config.name), (Equals("revision", config.revision),))


def valid_cluster_name(name: str) -> bool:
    """A DNS label: it becomes part of keys and messages."""
    return _NAME.fullmatch(name) is not None


def why_useless(config: ClusterConfig) -> str | None:
    """Why no session could do anything right with it, or None.

    Asked when a cluster is registered, not when its stored configuration is read: what an older release let through
    must stay readable, so that it can be shown, replaced and removed.
    """
    if config.server:
        try:
            port = urlsplit(config.server).port
        except ValueError:
            port = 0
        if port == 0:
            return f"server {config.server!r}: a port is a number from 1 to 65535"
    if config.namespace is not None and _NAME.fullmatch(config.namespace) is None:
        return f"namespace {config.namespace!r} is none: lower-case letters, digits and hyphens, at most 63"
    needed = ("service", "domain") if config.namespace else ("service", "namespace", "domain")
    held = {field for _, field, _, _ in Formatter().parse(config.template) if field is not None}
    missing = [f"{{{field}}}" for field in needed if field not in held]
    if missing:
        return f"template {config.template!r} lacks {' and '.join(missing)}: Services would share one name"
    made = config.template.format(service="s", namespace="n", domain=config.domain, cluster=config.name)
    if re.fullmatch(_LABELS, made) is None or not made.endswith(f".{config.domain}"):
        return f"template {config.template!r} makes {made!r}, which is no name below {config.domain}"
    return None


def explain(invalid: ValidationError) -> str:
    """The first complaint of a validation as one line for a person."""
    first = invalid.errors()[0]
    place = ".".join(str(p) for p in first["loc"])
    text = first["msg"].removeprefix("Value error, ")
    if first["type"] == "string_pattern_mismatch":
        text = f"{first['input']!r} is not valid: {_PATTERNS_IN_WORDS.get(place, 'see docs/configuration.md')}"
    return f"{place}: {text}" if place else text


def _parse(item: Item) -> ClusterConfig:
    config = ClusterConfig.model_validate_json(cast(str, item["document"]))
    return config.model_copy(update={"revision": cast(int, item["revision"])})
