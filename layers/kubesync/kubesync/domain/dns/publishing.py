"""Turns names and their targets into record sets in zones, within the limits of DNS and Route 53.

What one name becomes in each of its zones:

    leads to                        aliases wanted, and first    becomes
                                    host is an AWS load balancer
    --------                        ----------------------------  -------
    nothing                         -                             nothing
    addresses (hosts: ignored)      -                             A, AAAA
    hosts only                      yes                           A and AAAA alias, also at the apex
    a host in the zone itself       by annotation                 an alias for the types that stand there (``with_zone_aliases``)
    hosts only                      no                            CNAME of the first; at a zone's apex: reported
    the name itself as first host   -                             reported

Addresses that rules keep out of a zone (``RecordPlan._allowed_zones``) do not count there.

A name with a CNAME has no other records (RFC 1034 3.6.2): where SRV sets share the name, the CNAME is left out and reported.

For each name the plan also remembers its ``Origin``.

A plan is used in this order: ``want`` for each name, ``publish``, ``publish_srv``, ``finish``.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from itertools import product
from typing import Final

from kubesync.domain.dns.addresses import Address, Network, lies_in, parse_address
from kubesync.domain.dns.annotations import DnsAnnotations
from kubesync.domain.dns.elb_zones import CLOUDFRONT_ZONE, aws_zone_id, elb_zone_id
from kubesync.domain.dns.endpoints import address_not_allowed
from kubesync.domain.dns.names import canonical_name, why_illegal, zones_of
from kubesync.domain.dns.records import NOTHING_HELD, AliasTarget, Held, Problem, RecordKey, RecordSet, Zone
from kubesync.domain.dns.routing.policies import NOT_POSSIBLE, PRIMARY, Failover, Multivalue

# https://docs.aws.amazon.com/Route53/latest/DeveloperGuide/DNSLimitations.html: 400 values a record set.
MAX_VALUES: Final = 400
SAME_ZONE: Final = "same-zone"
"""In place of the id of an alias target's hosted zone, as in external-dns: the zone of the alias itself."""
# A change is DELETE plus CREATE in one batch of 32,000 characters of Value. The batch also holds the journal swap.
MAX_CHARACTERS: Final = 15_500

OF_TEMPLATE: Final = "template "
"""Begins the rule of a Service's own name; the template follows."""
OF_ENDPOINTS: Final = "host names of endpoints"
"""The rule of names ``<hostname>.<name>`` (``headless``)."""
OF_PORTS: Final = "named ports"
"""The rule of the names of SRV sets."""


@dataclass(frozen=True, slots=True, order=True)
class Origin:
    """Why a name is wanted: ``rule`` makes the name; ``source`` provides its values. Both are phrases for people, made of stable words."""

    rule: str
    source: str


@dataclass(frozen=True, slots=True)
class Targets:
    """What a name leads to: addresses and canonical host names. ``alias``: an alias may replace a CNAME. ``source``: see ``Origin``.

    Without addresses and host names, it leads to nothing.
    """

    source: str
    addresses: frozenset[Address] = frozenset()
    hosts: frozenset[str] = frozenset()
    alias: bool = False

    def union(self, other: Targets) -> Targets:
        """Both together, for a name that two rules want. The source is of the first; ``RecordPlan.origins`` has those of both."""
        addresses, hosts = self.addresses | other.addresses, self.hosts | other.hosts
        return Targets(self.source, addresses, hosts, self.alias or other.alias)


@dataclass(slots=True)
class RecordPlan:
    """Collects the record sets of one service, and the problems of what cannot be published.

    Args:
        zones: where its names may lie.
        ttl_seconds: of all its record sets.
        asked: what its annotations ask for.
        networks: only addresses of these are published; empty: all.
        held: what the key has.
        excluded: addresses of these are not published.
        alias: whether an alias may replace a CNAME to a host name of its status or of ``target``.
        problems: what is reported so far.
        wanted: the names that rules want, and what each leads to.
        sets: the record sets planned so far.
        origins: why each name is wanted, by name.
    """

    zones: tuple[Zone, ...]
    ttl_seconds: int
    asked: DnsAnnotations = field(default_factory=DnsAnnotations)
    networks: tuple[Network, ...] = ()
    held: Held = NOTHING_HELD
    excluded: tuple[Network, ...] = ()
    alias: bool = False
    problems: set[Problem] = field(default_factory=set)
    wanted: dict[str, Targets] = field(default_factory=dict)
    sets: dict[RecordKey, RecordSet] = field(default_factory=dict)
    origins: dict[str, set[Origin]] = field(default_factory=dict)

    def replaced_targets(self) -> Targets | None:
        """The targets of the ``target`` annotation, which replace an object's own. None: there is no such annotation."""
        if self.asked.targets is None:
            return None
        source = self.asked.given.origin("target")
        return classified(self.asked.targets, source, "InvalidTarget", self, alias=self.alias)

    def load_balancer_targets(self, status: Iterable[str], source: str) -> Targets:
        """The addresses and host names in an object's status. ``source``: the field."""
        return classified(status, source, "InvalidStatus", self, alias=self.alias)

    def report_alias(self, targets: Targets) -> None:
        """Report that an alias was asked for where the hosted zone of the host name is not known."""
        host = min(targets.hosts, default="")
        if self.asked.alias and host and not targets.addresses and self._zone_of_alias_target(host) is None:
            why = (
                "lies in no zone of the cluster, as it should (aws-target-hosted-zone)"
                if self.asked.alias_zone
                else "is no host of AWS with a known hosted zone"
            )
            self.problems.add(Problem("NoAliasTarget", host, f"{why}; a CNAME is published"))

    def want(self, name: str, targets: Targets, rule: str) -> None:
        """Note that a rule wants a name to lead to these targets. If several want one name, their targets are united."""
        self.wanted[name] = self.wanted[name].union(targets) if name in self.wanted else targets
        self.origins.setdefault(name, set()).add(Origin(rule, targets.source))

    def zones_for(self, name: str) -> tuple[Zone, ...]:
        """The zones of a name. Reports a name that is illegal or matches no zone, and returns none."""
        if reason := why_illegal(name, wildcard=True):
            self.problems.add(Problem("InvalidName", name, reason))
            return ()
        zones = zones_of(name, self.zones)
        if not zones:
            self.problems.add(Problem("NoZone", name, "the name fits none of the cluster's hosted zones"))
        return zones

    def publish(self) -> frozenset[str]:
        """Add the sets of all wanted names. Returns the names that then have addresses, which SRV sets may point to; an alias counts."""
        return frozenset(name for name, targets in self.wanted.items() if self._add_sets(name, targets))

    def _add_sets(self, name: str, targets: Targets) -> bool:
        """Add the sets of a name, by the table at the top. Returns whether the name then has addresses, so that SRV sets may point to it."""
        zones = self.zones_for(name)
        if not zones:
            return False
        allowed = {address: self._allowed_zones(zones, name, address) for address in sorted(targets.addresses)}
        if any(allowed.values()):
            for zone, record_type in product(zones, ("A", "AAAA")):
                texts = [a.text for a, where in allowed.items() if a.record_type == record_type and zone in where]
                self._add_values((zone,), name, record_type, texts)
            return True
        if not targets.hosts:
            return False
        host = min(targets.hosts)
        if host == name:
            self.problems.add(Problem("CnameLoop", name, "the name would lead to itself"))
            return False
        if targets.alias and (zone_id := self._zone_of_alias_target(host)) is not None:
            self._add_aliases(zones, name, host, zone_id)
            return zone_id != SAME_ZONE  # an alias in the same zone may still become a CNAME (``with_zone_aliases``)
        self._add_cname(zones, name, host)
        return False

    def _zone_of_alias_target(self, host: str) -> str | None:
        """The id of the hosted zone in which an alias target lies, or ``SAME_ZONE``. None: it is not known, so no alias is possible.

        annotations ask for             the zone
        -------------------             --------
        nothing: the cluster's option   that of the host name, if it is a load balancer of AWS
        an alias                        that of the host name, if AWS' service is known; else as for a zone of the cluster
        a zone of the cluster, or       ``SAME_ZONE``, if the host name lies in a zone of the cluster
          ``same-zone``
        another zone                    this zone
        """
        if not (self.asked.alias_types or self.asked.alias_zone):
            return elb_zone_id(host)
        if not self.asked.alias_zone and (known := aws_zone_id(host)) is not None:
            return known
        same = self.asked.alias_zone in ("", SAME_ZONE, *(zone.id for zone in self.zones))
        return (SAME_ZONE if zones_of(host, self.zones) else None) if same else self.asked.alias_zone

    def publish_srv(self, name: str, values: Iterable[str], source: str, count: int = 0) -> None:
        """Add an SRV set at an owner name such as ``_http._tcp.web.shop.svc.example.com``.

        ``count``: of how many values these are the first, if the caller has cut them; 0: these are all.
        """
        self.origins.setdefault(name, set()).add(Origin(OF_PORTS, source))
        self._add_values(self.zones_for(name), name, "SRV", sorted(set(values)), count)

    def finish(self) -> dict[RecordKey, RecordSet]:
        """Returns the planned record sets, sorted by key. Leaves out and reports a CNAME beside other sets."""
        others = {key.place for key in self.sets if key.type != "CNAME"}
        for key in [key for key in self.sets if key.type == "CNAME" and key.place in others]:
            del self.sets[key]
            self.problems.add(Problem("CnameConflict", key.name, "a name with a CNAME cannot have other records"))
        return {key: self.sets[key] for key in sorted(self.sets)}

    def _allowed_zones(self, zones: tuple[Zone, ...], name: str, address: Address) -> Sequence[Zone]:
        """The zones, of these, in which a name may lead to an address. Reports an address that is not simply allowed in all.

        the address                          allowed in
        -----------                          ----------
        outside ``networks``, or
          in ``excluded``                    none: a person's decision
        forbidden (``Address.forbidden``)    those where it stands, so that an update changes no record
        any other                            all
        """
        outside = "" if lies_in(address, self.networks) else "outside --target-net-filter"
        if self.excluded and lies_in(address, self.excluded):
            outside = "in --exclude-target-net"
        if not (why := outside or address.forbidden):
            return zones
        held = self.held.values
        stands = [zone for zone in zones if not outside and address.text in held.get((zone.id, name), ())]
        self.problems.add(address_not_allowed(address.text, why, stands=bool(stands)))
        return stands

    def _add_values(
        self, zones: Iterable[Zone], name: str, record_type: str, values: Sequence[str], count: int = 0
    ) -> None:
        """Add one set with these values, in their order, in each of the zones; without values none. Reports values that do not fit.

        ``count``: see ``publish_srv``.
        """
        fitting, count = _first_that_fit(values), max(count, len(values))
        if len(fitting) < count:
            most = f"at most {MAX_VALUES} values and {MAX_CHARACTERS} characters fit"
            why = f"only the first {len(fitting)} of {count} values are published: {most}"
            self.problems.add(Problem("TooManyValues", f"{name} {record_type}", why))
        if fitting:
            for zone in zones:
                self._add_set(zone, name, record_type, RecordSet(self.ttl_seconds, fitting, routing=self.asked.routing))

    def _add_cname(self, zones: Iterable[Zone], name: str, host: str) -> None:
        """Add a CNAME in each of the zones. Reports a zone of which the name is the apex: it can have none there."""
        for zone in zones:
            if name == zone.name:
                self.problems.add(Problem("CnameAtApex", name, "the apex of a zone cannot have a CNAME"))
            else:
                self._add_set(
                    zone, name, "CNAME", RecordSet(self.ttl_seconds, (f"{host}.",), routing=self.asked.routing)
                )

    def _add_aliases(self, zones: Iterable[Zone], name: str, host: str, zone_id: str) -> None:
        """Add aliases. ``zone_id``: of the target; ``SAME_ZONE``: the alias' own.

        Route 53 accepts an alias to a name of the same zone only if that name has a set of the type. This is not known here. So such an alias
        also has the TTL and the value of a CNAME, and ``with_zone_aliases`` makes one of the two of it. At a zone's apex it has no TTL:
        there can be no CNAME.
        """
        # The name of a load balancer does not show whether it has IPv6. If it has none, an AAAA alias answers with no data,
        # which is right. external-dns makes both for the same reason, and evaluates health by default.
        health = zone_id != CLOUDFRONT_ZONE if self.asked.evaluate_health is None else self.asked.evaluate_health
        same = zone_id == SAME_ZONE
        for zone, record_type in product(zones, self.asked.alias_types or ("A", "AAAA")):
            target = AliasTarget(zone.id if same else zone_id, host, health)
            ttl = self.ttl_seconds if same and name != zone.name else None
            values = (f"{host}.",) if same else ()
            self._add_set(zone, name, record_type, RecordSet(ttl, values, target, routing=self.asked.routing))

    def _add_set(self, zone: Zone, name: str, record_type: str, record_set: RecordSet) -> None:
        """Add a set to the plan.

        One that Route 53 would refuse for its policy is reported, and added with ``NOT_POSSIBLE``. It is never sent like that: ``keep_to_held_names``
        (``cluster.claims.allowed_names``) gives it the policy of the set that the key holds there, or leaves it out. So what stands stays.
        """
        if why := why_not_possible(record_type, record_set, private=zone.private):
            self.problems.add(Problem("RoutingNotPossible", f"{name} {record_type}", why))
            record_set = replace(record_set, routing=NOT_POSSIBLE)
        self.sets[RecordKey(zone.id, name, record_type, self.asked.identifier)] = record_set


def classified(texts: Iterable[str], source: str, code: str, plan: RecordPlan, *, alias: bool = False) -> Targets:
    """Separate addresses from host names. Reports a text that is neither, under ``code``.

    ``source``: see ``Origin``. ``alias``: an alias may replace a CNAME to a host name.
    """
    addresses, hosts = set(), set()
    for text in texts:
        host = canonical_name(text)
        if (address := parse_address(host)) is not None:
            addresses.add(address)
        elif reason := why_illegal(host) or why_no_host(host):
            plan.problems.add(Problem(code, text, f"neither an IP address nor a DNS name: {reason}"))
        else:
            hosts.add(host)
    return Targets(source, frozenset(addresses), frozenset(hosts), alias)


def why_no_host(host: str) -> str:
    """Why a legal name is no host name; empty if it is one. It rejects mistyped addresses such as ``192.0.2.256``.

    No top-level domain is a number (RFC 3696 2).
    """
    return "it ends in a number" if host.rpartition(".")[2].isdecimal() else ""


def why_not_possible(record_type: str, record_set: RecordSet, *, private: bool) -> str:
    """Why Route 53 refuses a set of a routing policy, whatever else stands at the name; empty if it does not. ``private``: in a private zone.

        policy       record set                                       refused, source
        ------       ----------                                       ---------------
        multivalue   an alias                                         API, MultiValueAnswer
        multivalue   CNAME, NS                                        developer guide, "Multivalue answer routing"
        failover     an alias that does not evaluate its target       API, Failover
        PRIMARY      no alias, and no health check                    developer guide, "Failover routing"
        any          an alias to CloudFront, in a private zone        API, AliasTarget: "can't be created in a private zone"
        any          an alias to CloudFront that evaluates it         API, EvaluateTargetHealth: "You can't set" it to true

    API: https://docs.aws.amazon.com/Route53/latest/APIReference/API_ResourceRecordSet.html and API_AliasTarget.html.
    What stands beside what: ``policies``, ``domain.plan``.
    """
    alias, routing = record_set.alias, record_set.routing
    if isinstance(routing, Multivalue) and alias is not None:
        return "multivalue answers cannot be aliases"
    if isinstance(routing, Multivalue) and record_type in ("CNAME", "NS"):
        return f"multivalue answers cannot be {record_type}: they need addresses"
    if isinstance(routing, Failover) and alias is not None and not alias.evaluate_health:
        return "a failover alias must evaluate the health of its target"
    if isinstance(routing, Failover) and routing.role == PRIMARY and alias is None and not routing.health_check:
        return "a PRIMARY that is no alias needs a health check"
    if alias is not None and alias.zone_id == CLOUDFRONT_ZONE and private:
        return "a private zone can have no alias to a CloudFront distribution"
    if alias is not None and alias.zone_id == CLOUDFRONT_ZONE and alias.evaluate_health:
        return "an alias to a CloudFront distribution cannot evaluate the health of its target"
    return ""


def _first_that_fit(values: Sequence[str]) -> tuple[str, ...]:
    """As many of the first values as one set may have: ``MAX_VALUES``, ``MAX_CHARACTERS``."""
    characters = 0
    for index, value in enumerate(values[:MAX_VALUES]):
        characters += len(value)
        if characters > MAX_CHARACTERS:
            return tuple(values[:index])
    return tuple(values[:MAX_VALUES])
