"""Which configurations of clusters may be registered, and beside which others."""

import re
from collections.abc import Iterable, Iterator
from urllib.parse import urlsplit

from kubesync.aws.tables.control.clusters import LABELS, ClusterConfig
from kubesync.domain.dns.names import zones_of
from kubesync.domain.dns.routing.policies import SIMPLE, Routing, Simple
from kubesync.domain.dns.routing.reading import read_routing, routing_of_cluster
from kubesync_local.registration.scopes import whys_no_scope
from kubesync_local.registration.templates import NameForm, shared_name, why_ambiguous
from kubesync_local.sources.options import OF_SOURCES


def why_useless(config: ClusterConfig) -> str | None:
    """The first reason why no session could work with this configuration, or None."""
    return next(whys_useless(config), None)


def whys_useless(config: ClusterConfig) -> Iterator[str]:
    """Why no session could work with this configuration.

    It is checked when a cluster is registered, not when a stored configuration is read: what an older release accepted
    must stay readable, so that people can show, replace and remove it.
    """
    if config.server:
        try:
            port = urlsplit(config.server).port
        except ValueError:
            port = 0
        if port == 0:
            yield f"server {config.server!r}: a port is a number from 1 to 65535"
    yield from whys_no_scope(config.scope)
    for source, of_source in OF_SOURCES.items():
        for option in of_source.options if source not in config.sources else ():
            if getattr(config, option.name):
                yield f"{option.flag} is for {of_source.objects}: add --sources service,{source}, or leave it out"
    if config.health_check and not config.routing:
        yield "--health-check needs --routing: a set that is alone at its name has no health check"
    if config.routing.startswith("multivalue="):
        yield f"--routing {config.routing!r}: multivalue takes no value: give --routing multivalue"
    form = name_form(config)
    if reason := why_ambiguous(form):
        yield f"template {config.template!r} {reason}: Services would share one name"
        return
    made = form.example("s", "n")
    if not form.nameless and (re.fullmatch(LABELS, made) is None or not made.endswith(f".{config.domain}")):
        yield f"template {config.template!r} makes {made!r}, which is not a name below {config.domain}"


def why_outside(config: ClusterConfig) -> str | None:
    """Why none of its zones can hold its Services' names, in one line, or None."""
    form = name_form(config)
    if zones_of(config.domain if form.nameless else form.example(), (zone.zone for zone in config.zones)):
        return None
    zones = ", ".join(f"{zone.id} is {zone.name}" for zone in config.zones)
    return f"none of the given zones contains {config.domain} ({zones})"


def why_clashing(config: ClusterConfig, other: ClusterConfig, before: ClusterConfig | None = None) -> str | None:
    """Why two clusters cannot both be registered, in one line, or None. Services of both could have the same name in one zone.

        the clusters                               may have Services of one name
        ------------                               -----------------------------
        none, or one of them, has a policy         no
        have different policies                    no: all sets of a name have one policy; yes, if it shared names before, with a policy:
                                                   what stands stays until both have the same one
        both have one role, or one region          no: it belongs to one set of a name
        are in different shards                    no: a claim that goes to another shard takes up to a minute
        have the same policy otherwise             yes

    Annotations may give a name to any two clusters: there claims decide.

    Args:
        before: how the first one is registered; None: it is new.
    """
    shared = shared_name(name_form(config), name_form(other))
    if shared is None:
        return None
    ours, theirs = (zones_of(shared, (zone.zone for zone in each.zones)) for each in (config, other))
    if not set(ours) & set(theirs):
        return None
    same = f"Services of cluster {other.name} can have the same names ({shared})"
    own, its = policy_of(config), policy_of(other)
    if isinstance(own, Simple) and isinstance(its, Simple):
        return f"{same}: give another --domain or --template, or give both clusters the same --routing"
    turns = Simple not in {type(own), type(its)} and before is not None and _share(before, other)
    if type(own) is not type(its) and not turns:
        has = f"--routing {other.routing}" if other.routing else "no --routing"
        return f"{same}, and it has {has}: clusters that share names have the same policy"
    if (seat := own.seat(config.name)) and seat == its.seat(other.name):
        return f"{same}, and it has {seat} already: only one cluster can have that"
    if config.shard != other.shard:
        return f"{same}, and it belongs to shard {other.shard}: clusters that share names have the same shard"
    return None


def _share(config: ClusterConfig, other: ClusterConfig) -> bool:
    """Whether both have a policy, and Services of one name."""
    policies = {type(policy_of(config)), type(policy_of(other))}
    return Simple not in policies and shared_name(name_form(config), name_form(other)) is not None


def policy_of(config: ClusterConfig) -> Routing:
    """The routing policy of its record sets, as far as no annotation says otherwise."""
    texts = routing_of_cluster(config.routing, config.health_check, config.name)
    return read_routing(lambda name: (name, None), [], texts)[1] or SIMPLE


def remarks_on_routing(config: ClusterConfig, others: Iterable[ClusterConfig]) -> Iterator[str]:
    """What to know of a cluster with a policy: what other clusters do in the same zones, and what its record sets need."""
    if not config.routing:
        return
    zones = {zone.id for zone in config.zones}
    for other in others:
        shared = other.name != config.name and not zones.isdisjoint(zone.id for zone in other.zones)
        if shared and other.routing and not other.deleting:
            yield f"note: cluster {other.name} has --routing {other.routing} in the same zone"
            if type(policy_of(config)) is not type(policy_of(other)) and _share(config, other):
                yield f"note: names that both have stay as they are until cluster {other.name} has this policy too: then all change in one batch"
    if config.routing.lower() == "failover=primary" and not config.health_check:
        yield "note: of a PRIMARY, only aliases need no health check: give --health-check, or annotate Services with aws-health-check-id"


def name_form(config: ClusterConfig) -> NameForm:
    """What the names of its Services depend on."""
    return NameForm(config.template, config.domain, config.name, config.scope.namespace)
