"""What Route 53 answers: routing policies, health checks, and the health of alias targets, as its documentation says.

    policy         answers with                                          where all are unhealthy
    ------         ------------                                          -----------------------
    simple         the set                                               the set
    weighted       a healthy set with a weight; else one of weight 0     as if all were healthy
    latency        the healthy set of the nearest region                 as if all were healthy
    failover       the primary while it is healthy, else the secondary   the primary
    geolocation    the healthy set of the smallest place around          as if all were healthy
    multivalue     up to eight healthy sets                              up to eight sets
    geoproximity   any healthy set: distances are not modelled           any set

A place that no geolocation set is for has no answer. A set is healthy if its health check is, and, for an alias that evaluates it, its
target: a group of sets is healthy if one of them is. What has no health check is healthy.

Sources: https://docs.aws.amazon.com/Route53/latest/DeveloperGuide/health-checks-how-route-53-chooses-records.html, and there
dns-failover-determining-health-of-endpoints, dns-failover-complex-configs, routing-policy-weighted, routing-policy-multivalue.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field

from kubesync_local.standins.route53.zone.model import Element, StoredSet
from kubesync_local.standins.route53.zone.routing import policy_of

_MOST_ANSWERS = 8


class HealthCheck:
    """A health check on an endpoint: it changes its mind after so many probes in a row that say the contrary.

    Args:
        probe: whether the endpoint answers now.
        interval_seconds: 10 or 30. threshold: from 1 to 10; Route 53's default is 3.
    """

    def __init__(self, probe: Callable[[], bool], interval_seconds: float = 30.0, threshold: int = 3) -> None:
        self.healthy = True
        self._probe, self._interval, self._threshold = probe, interval_seconds, threshold
        self._next, self._contrary = 0.0, 0

    def pass_time(self, now: float) -> None:
        """Probe the endpoint if it is time. To be called at least once an interval."""
        if now < self._next:
            return
        self._next = now + self._interval
        self._contrary = 0 if self._probe() == self.healthy else self._contrary + 1
        if self._contrary >= self._threshold:
            self.healthy, self._contrary = not self.healthy, 0


@dataclass(frozen=True, slots=True)
class Client:
    """Where a query comes from. ``regions``: the nearest first. ``country`` and ``state`` are codes of two letters."""

    regions: tuple[str, ...] = ()
    continent: str = ""
    country: str = ""
    state: str = ""


@dataclass(frozen=True, slots=True)
class Resolver:
    """Answers from the sets of a zone.

    Args:
        sets: everything in the zone.
        checks: health checks that exist, by id.
        outside: whether an alias target outside the zone is healthy, by name.
    """

    sets: Sequence[StoredSet]
    checks: dict[str, HealthCheck] = field(default_factory=dict)
    outside: Callable[[str], bool] = lambda _name: True

    def possible(self, name: str, record_type: str, client: Client = Client()) -> list[frozenset[str]]:
        """Every answer that Route 53 may give: the values, or the name of an alias target outside the zone. ``name``: in listing form."""
        here = self._at(name, record_type)
        return list(
            dict.fromkeys(found for group in self._groups(here, client) for found in self._values(group, client))
        )

    def _at(self, name: str, record_type: str) -> list[StoredSet]:
        return [each for each in self.sets if (each.key.name, each.key.type) == (name, record_type)]

    def _values(self, group: Sequence[StoredSet], client: Client) -> Iterable[frozenset[str]]:
        alias = group[0].alias if len(group) == 1 else None
        if alias is None:
            return [frozenset(value for each in group for value in each.values)]
        if self._at(alias.name, group[0].key.type):
            return self.possible(alias.name, group[0].key.type, client)
        return [frozenset({alias.name})]

    def _groups(self, here: Sequence[StoredSet], client: Client) -> list[Sequence[StoredSet]]:
        """The groups of sets one of which answers."""
        policies = [_policy(each) for each in here]
        healthy = [each for each in here if self._healthy(each)]
        match policies[0].tag if policies else "":
            case "Weight":
                with_weight = [each for each in here if _policy(each).text != "0"]
                for choice in ([each for each in with_weight if self._healthy(each)], healthy, with_weight, here):
                    if choice:
                        return [[each] for each in choice]
            case "Failover":
                order = sorted(here, key=lambda each: _policy(each).text)  # PRIMARY comes first
                return [[next((each for each in order if self._healthy(each)), order[0])]]
            case "Region":
                near = sorted(healthy or here, key=lambda each: _place_of(_policy(each).text, client.regions))
                return [near[:1]]
            case "GeoLocation":
                around = [each for each in here if _smallness(each, client)]
                around = [each for each in around if each in healthy] or around
                return [sorted(around, key=lambda each: -_smallness(each, client))[:1]] if around else []
            case "MultiValueAnswer":
                return [(healthy or here)[:_MOST_ANSWERS]]
        return [[each] for each in healthy or here]

    def _healthy(self, each: StoredSet) -> bool:
        check = self.checks.get(each.health_check_id)
        if check is not None and not check.healthy:
            return False
        if each.alias is None or not each.alias.evaluate_health:
            return True
        target = self._at(each.alias.name, each.key.type)
        return any(map(self._healthy, target)) if target else self.outside(each.alias.name)


def _policy(each: StoredSet) -> Element:
    return policy_of(each) or Element("")


def _place_of(region: str, regions: Sequence[str]) -> int:
    return regions.index(region) if region in regions else len(regions)


def _smallness(each: StoredSet, client: Client) -> int:
    """How small the place of a set is around a client, from 1 (everywhere); 0: the client is not there."""
    place = {inner.tag: inner.text for inner in _policy(each).children}
    if state := place.get("SubdivisionCode"):
        return 4 if (place["CountryCode"], state) == (client.country, client.state) else 0
    if country := place.get("CountryCode"):
        return 1 if country == "*" else 3 if country == client.country else 0
    return 2 if place.get("ContinentCode") == client.continent else 0
