"""Which routing policy the annotations of an object ask for.

    set-identifier    policies asked for     leads to
    --------------    ------------------     --------
    none or empty     none                   simple sets
    none or empty     a weight alone         simple sets: reported
    none or empty     anything else          not possible: an identifier is missing
    not usable        any                    nothing is published: reported
    usable            none                   weight 1
    usable            one, usable            it
    usable            a weight, not usable   weight 1: reported
    usable            another, not usable    not possible
    usable            several                not possible

Not possible: reported (``RoutingNotPossible``). The object keeps what it holds, as it is, and gets no other names.

A cluster may have a policy (``--routing``). Its objects are read as if they had the annotations that say the same (``routing_of_cluster``).
An annotation of an object replaces only what it names: the identifier, the policy, or the health check.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import lru_cache
from types import MappingProxyType
from typing import Final

from kubesync.domain.dns.records import Problem
from kubesync.domain.dns.routing.policies import (
    DEFAULT_WEIGHT,
    MAX_WEIGHT,
    NOT_POSSIBLE,
    PRIMARY,
    SECONDARY,
    SIMPLE,
    Failover,
    Geolocation,
    Geoproximity,
    Latency,
    Multivalue,
    Routing,
    Weighted,
    point_of,
)

# https://docs.aws.amazon.com/Route53/latest/APIReference/API_ResourceRecordSet.html: SetIdentifier, HealthCheckId, Region.
MAX_IDENTIFIER_CHARACTERS: Final = 128
MAX_BIAS: Final = 99
_HEALTH_CHECK: Final = re.compile("[!-~]{1,64}")
_LOCAL_ZONE_GROUP: Final = re.compile("[a-z0-9-]{1,64}")
# A test compares them with botocore's model.
_REGIONS: Final = (
    "af-south-1 ap-east-1 ap-east-2 ap-northeast-1 ap-northeast-2 ap-northeast-3 ap-south-1 ap-south-2 ap-southeast-1 "
    "ap-southeast-2 ap-southeast-3 ap-southeast-4 ap-southeast-5 ap-southeast-6 ap-southeast-7 ca-central-1 ca-west-1 cn-north-1 "
    "cn-northwest-1 eu-central-1 eu-central-2 eu-north-1 eu-south-1 eu-south-2 eu-west-1 eu-west-2 eu-west-3 eusc-de-east-1 "
    "il-central-1 me-central-1 me-south-1 mx-central-1 sa-east-1 us-east-1 us-east-2 us-gov-east-1 us-gov-west-1 us-west-1 "
    "us-west-2"
)
REGIONS: Final = frozenset(_REGIONS.split())
CONTINENTS: Final = ("AF", "AN", "AS", "EU", "NA", "OC", "SA")
# API_GeoLocation, CountryCode: ISO 3166-1 alpha-2, and * for all that no other set answers. XK is Kosovo, without a code of ISO.
_COUNTRIES: Final = (
    "AD AE AF AG AI AL AM AO AQ AR AS AT AU AW AX AZ BA BB BD BE BF BG BH BI BJ BL BM BN BO BQ BR BS BT BV BW BY BZ CA CC CD CF CG CH CI CK CL CM CN "
    "CO CR CU CV CW CX CY CZ DE DJ DK DM DO DZ EC EE EG EH ER ES ET FI FJ FK FM FO FR GA GB GD GE GF GG GH GI GL GM GN GP GQ GR GS GT GU GW GY HK HM "
    "HN HR HT HU ID IE IL IM IN IO IQ IR IS IT JE JM JO JP KE KG KH KI KM KN KP KR KW KY KZ LA LB LC LI LK LR LS LT LU LV LY MA MC MD ME MF MG MH MK "
    "ML MM MN MO MP MQ MR MS MT MU MV MW MX MY MZ NA NC NE NF NG NI NL NO NP NR NU NZ OM PA PE PF PG PH PK PL PM PN PR PS PT PW PY QA RE RO RS RU RW "
    "SA SB SC SD SE SG SH SI SJ SK SL SM SN SO SR SS ST SV SX SY SZ TC TD TF TG TH TJ TK TL TM TN TO TR TT TV TW TZ UA UG UM US UY UZ VA VC VE VG VI "
    "VN VU WF WS XK YE YT ZA ZM ZW *"
)
COUNTRIES: Final = frozenset(_COUNTRIES.split())
# API_GeoLocationDetails, SubdivisionCode: states and possessions of the US, as the United States Postal Service abbreviates them.
_STATES: Final = (
    "AK AL AR AS AZ CA CO CT DC DE FL FM GA GU HI IA ID IL IN KS KY LA MA MD ME MH MI MN MO MP MS MT NC ND NE NH NJ NM NV NY OH OK OR PA PR PW "
    "RI SC SD TN TX UT VA VI VT WA WI WV WY"
)
STATES: Final = frozenset(_STATES.split())

_POLICIES: Final = {
    "aws-weight": ("aws-weight",),
    "aws-region": ("aws-region",),
    "aws-failover": ("aws-failover",),
    "aws-multi-value-answer": ("aws-multi-value-answer",),
    "aws-geolocation": (
        "aws-geolocation-continent-code",
        "aws-geolocation-country-code",
        "aws-geolocation-subdivision-code",
    ),
    "aws-geoproximity": (
        "aws-geoproximity-region",
        "aws-geoproximity-local-zone-group",
        "aws-geoproximity-coordinates",
        "aws-geoproximity-bias",
    ),
}
"""The annotations of each policy, by the one that names it here. ``_geolocation`` and ``_geoproximity`` rely on their order."""
POLICY_ANNOTATIONS: Final = frozenset(name for names in _POLICIES.values() for name in names)
_OF_CLUSTERS: Final = {
    "weighted": "aws-weight",
    "multivalue": "aws-multi-value-answer",
    "failover": "aws-failover",
    "latency": "aws-region",
}
"""The policies that ``--routing`` may name, and the annotation that says the same."""
NOTHING_SAID: Final[Mapping[str, str]] = MappingProxyType({})


class _NotPossibleError(Exception):
    """The annotations ask for no possible policy. Never leaves this file. ``subject``: the name of the annotation to report."""

    def __init__(self, subject: str, why: str) -> None:
        super().__init__(why)
        self.subject = subject


@lru_cache(maxsize=256)
def routing_of_cluster(option: str, health_check: str, cluster: str) -> Mapping[str, str]:
    """The annotations that say the same as ``--routing`` and ``--health-check`` of a cluster; none if it has no policy.

    Raises:
        ValueError: the options do not have such a form.
    """
    if not option:
        return NOTHING_SAID
    kind, _, value = option.partition("=")
    text = str(DEFAULT_WEIGHT) if option == "weighted" else value  # a weight need not be given
    texts = {_OF_CLUSTERS.get(kind, ""): text, "aws-health-check-id": health_check}
    if not health_check:
        del texts["aws-health-check-id"]
    try:
        if kind not in _OF_CLUSTERS or (kind == "weighted" and not _is_weight(text)):
            raise _NotPossibleError("", "")
        _policy(cluster, texts)  # only to check them
    except _NotPossibleError as error:
        if error.subject == "aws-health-check-id":
            raise ValueError(f"--health-check {health_check!r} {error}") from None
        raise ValueError(
            f"--routing {option!r} is none of weighted, weighted=0 to weighted={MAX_WEIGHT}, multivalue, failover=primary, "
            "failover=secondary, and latency=REGION with a region of AWS that Route 53 knows"
        ) from None
    return MappingProxyType({"set-identifier": cluster, **texts})


def read_routing(
    find: Callable[[str], tuple[str, str | None]], problems: list[Problem], of_cluster: Mapping[str, str] = NOTHING_SAID
) -> tuple[str, Routing | None]:
    """Read the annotations, by the table at the top. An empty identifier or weight counts as missing.

    Args:
        find: an annotation's whole key, and its value.
        problems: takes what is reported.
        of_cluster: what counts where an object does not say it: ``routing_of_cluster``.

    Returns:
        the set identifier, and the policy; None: Route 53 does not accept the identifier.
    """
    # 1. What the object says itself.
    names = ("aws-health-check-id", *POLICY_ANNOTATIONS)
    texts = {name: text.strip() for name in names if (text := find(name)[1]) is not None}
    texts = {name: text for name, text in texts.items() if text or name != "aws-weight"}
    identifier = (find("set-identifier")[1] or "").strip() or of_cluster.get("set-identifier", "")
    if len(identifier) > MAX_IDENTIFIER_CHARACTERS or not (identifier.isascii() and identifier.isprintable()):
        message = f"must be 1 to {MAX_IDENTIFIER_CHARACTERS} printable ASCII characters; nothing is published"
        problems.append(Problem("InvalidSetIdentifier", find("set-identifier")[0], message))
        return "", None
    if not identifier and texts.keys() <= {"aws-weight"}:
        why = "has no effect: give a set-identifier as well"
        problems += [Problem("WeightWithoutIdentifier", find(name)[0], why) for name in texts]
        return "", SIMPLE
    unusable_weight = texts.keys() & POLICY_ANNOTATIONS == {"aws-weight"} and not _is_weight(texts["aws-weight"])
    if unusable_weight:
        del texts["aws-weight"]
    # 2. What the cluster says counts for the rest: for the policy only if the object asks for none.
    asks = texts.keys() & POLICY_ANNOTATIONS
    texts = {name: text for name, text in of_cluster.items() if not asks or name not in POLICY_ANNOTATIONS} | texts
    try:
        routing = _policy(identifier, texts)
    except _NotPossibleError as error:
        problems.append(Problem("RoutingNotPossible", find(error.subject)[0], str(error)))
        return identifier, NOT_POSSIBLE
    if unusable_weight:
        used = "the cluster's --routing" if of_cluster else DEFAULT_WEIGHT
        why = f"must be a whole number from 0 to {MAX_WEIGHT}; {used} is used"
        problems.append(Problem("InvalidWeight", find("aws-weight")[0], why))
    return identifier, routing


def _is_weight(text: str) -> bool:
    """Whether a text is a whole number from 0 to ``MAX_WEIGHT``."""
    return re.fullmatch("[0-9]{1,3}", text) is not None and int(text) <= MAX_WEIGHT


def _policy(identifier: str, texts: Mapping[str, str]) -> Routing:
    """The policy that annotations ask for, or the options of a cluster that are read like annotations.

    Args:
        identifier: the set identifier. If it is empty, ``texts`` is not: the callers know that an object without both has simple sets.
        texts: of the annotations, by their names without prefix. If a weight is the only policy among them, the caller has checked it.

    Raises:
        _NotPossibleError: there is no such policy, or there are several.
    """
    if not identifier:
        raise _NotPossibleError(min(texts), "needs a set-identifier")
    asked = [policy for policy, names in _POLICIES.items() if texts.keys() & set(names)]
    if len(asked) > 1:
        second = next(name for name in _POLICIES[asked[1]] if name in texts)
        raise _NotPossibleError(second, f"an object has one policy, and {asked[0]} asks for another")
    routing: Routing
    match asked:
        case ["aws-region"]:
            routing = Latency(_region(texts, "aws-region"))
        case ["aws-failover"]:
            routing = Failover(_one_of((PRIMARY, SECONDARY), texts, "aws-failover"))
        case ["aws-multi-value-answer"]:
            if texts["aws-multi-value-answer"].lower() not in ("true", ""):
                raise _NotPossibleError("aws-multi-value-answer", 'must be "true", or empty')
            routing = Multivalue()
        case ["aws-geolocation"]:
            routing = _geolocation(texts)
        case ["aws-geoproximity"]:
            routing = _geoproximity(texts)
        case _:
            routing = Weighted(int(texts.get("aws-weight", DEFAULT_WEIGHT)))
    health_check = texts.get("aws-health-check-id", "")
    if "aws-health-check-id" in texts and not _HEALTH_CHECK.fullmatch(health_check):
        raise _NotPossibleError("aws-health-check-id", "is no id of a health check of Route 53")
    return replace(routing, health_check=health_check)


def _one_of(words: tuple[str, ...], texts: Mapping[str, str], name: str) -> str:
    """The text of an annotation, in capitals. Raises _NotPossibleError if it is none of these words."""
    if (word := texts.get(name, "").upper()) not in words:
        raise _NotPossibleError(name, f"must be {', '.join(words[:-1])} or {words[-1]}")
    return word


def _region(texts: Mapping[str, str], name: str) -> str:
    """The region in an annotation. Raises _NotPossibleError."""
    if (region := texts[name].lower()) not in REGIONS:
        raise _NotPossibleError(name, "is no region of AWS that Route 53 knows")
    return region


def _geolocation(texts: Mapping[str, str]) -> Geolocation:
    """API_GeoLocation: a continent alone; or a country, and a state of the US. Raises _NotPossibleError."""
    of_continent, of_country, of_state = _POLICIES["aws-geolocation"]
    continent, country, state = (texts.get(name, "").upper() for name in (of_continent, of_country, of_state))
    if continent and (country or state):
        raise _NotPossibleError(of_continent, "goes with no country and no subdivision")
    if continent:
        _one_of(CONTINENTS, texts, of_continent)
    elif country not in COUNTRIES:
        given = next(name for name in (of_country, of_state, of_continent) if name in texts)
        raise _NotPossibleError(given, "give a country's code of two letters (ISO 3166-1), or *")
    if state and (country != "US" or state not in STATES):
        raise _NotPossibleError(of_state, "must be a state's code of two letters, and the country US")
    return Geolocation(continent, country, state)


def _geoproximity(texts: Mapping[str, str]) -> Geoproximity:
    """API_GeoProximityLocation: one of region, local zone group and coordinates. Raises _NotPossibleError."""
    of_region, of_group, of_point, of_bias = _POLICIES["aws-geoproximity"]
    places = [name for name in (of_region, of_group, of_point) if name in texts]
    if len(places) != 1:
        raise _NotPossibleError((*places, of_bias)[0], "give one of region, local zone group and coordinates")
    bias, group = texts.get(of_bias, "0"), texts.get(of_group, "").lower()
    if not re.fullmatch("[-+]?[0-9]{1,2}", bias):
        raise _NotPossibleError(of_bias, f"must be a whole number from -{MAX_BIAS} to {MAX_BIAS}")
    if of_group in texts and not _LOCAL_ZONE_GROUP.fullmatch(group):
        raise _NotPossibleError(of_group, "must be the name of a local zone group, such as us-east-1-bue-1")
    point = point_of(",".join(map(str.strip, texts.get(of_point, "").split(","))))
    if of_point in texts and not point:
        raise _NotPossibleError(of_point, "must be latitude,longitude with at most two decimals, such as 49.22,-74.01")
    region = _region(texts, of_region) if of_region in texts else ""
    return Geoproximity(region, group, point, int(bias))
