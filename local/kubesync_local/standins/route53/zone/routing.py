"""What Route 53 accepts of routing policies: the form of one set, and what may stand beside what.

"API" is https://docs.aws.amazon.com/Route53/latest/APIReference/API_ResourceRecordSet.html, "Guide" the developer guide, whose page is
named. The texts of the messages are guesses in the form of those that are known.
"""

import re
from collections.abc import Iterator, Mapping
from typing import Final

from kubesync_local.standins.route53.zone.model import Element, Limits, SetKey, StoredSet

# API, Region: its enumeration.
REGIONS: Final = frozenset("""
    us-east-1 us-east-2 us-west-1 us-west-2 ca-central-1 ca-west-1 mx-central-1 sa-east-1
    eu-west-1 eu-west-2 eu-west-3 eu-central-1 eu-central-2 eu-north-1 eu-south-1 eu-south-2 eusc-de-east-1
    ap-southeast-1 ap-southeast-2 ap-southeast-3 ap-southeast-4 ap-southeast-5 ap-southeast-6 ap-southeast-7
    ap-northeast-1 ap-northeast-2 ap-northeast-3 ap-east-1 ap-east-2 ap-south-1 ap-south-2
    me-south-1 me-central-1 il-central-1 af-south-1 cn-north-1 cn-northwest-1 us-gov-east-1 us-gov-west-1
    """.split())  # fmt: skip  # noqa: SIM905
# API_GeoLocationDetails, SubdivisionCode: https://pe.usps.com/text/pub28/28apb.htm, states and possessions.
_STATES: Final = frozenset("""
    AL AK AS AZ AR CA CO CT DE DC FM FL GA GU HI ID IL IN IA KS KY LA ME MH MD MA MI MN MS MO MT NE NV NH NJ NM NY NC ND MP OH OK OR PW PA PR
    RI SC SD TN TX UT VT VI VA WA WV WI WY
    """.split())  # fmt: skip  # noqa: SIM905
_MAX_WEIGHT: Final = 255
_MAX_BIAS: Final = 99
_MAX_HEALTH_CHECK_CHARACTERS: Final = 64
# AliasTarget, HostedZoneId: that of every CloudFront distribution.
CLOUDFRONT: Final = "Z2FDTNDATAQYW2"
# API, Weight: at most 100 weighted sets of one name and type. Guide, DNSLimitations: 30 geoproximity ones.
_MOST: Final = {"Weight": 100, "GeoProximityLocation": 30}
_WORDS: Final = {
    "Weight": "weighted",
    "Region": "latency",
    "GeoLocation": "geolocation",
    "Failover": "failover",
    "MultiValueAnswer": "multivalue answer",
    "GeoProximityLocation": "geoproximity",
}
_BREACH: Final = "Invalid XML ; Value is not facet-valid with respect to"


def policy_of(record_set: StoredSet) -> Element | None:
    """The element of its policy; None: it is simple, or made by a traffic policy."""
    return next((e for e in record_set.routing if e.tag != "TrafficPolicyInstanceId"), None)


def breach_of_form(record_set: StoredSet) -> str | None:
    """The first violation of the API's form."""
    if len(record_set.health_check_id) > _MAX_HEALTH_CHECK_CHARACTERS:
        return f"{_BREACH} maxLength '{_MAX_HEALTH_CHECK_CHARACTERS}' for type 'HealthCheckId'."
    for element in record_set.routing:
        inside = {inner.tag: inner for inner in element.children}
        match element.tag:
            case "Weight" if not re.fullmatch("[0-9]{1,3}", element.text) or int(element.text) > _MAX_WEIGHT:
                return f"{_BREACH} maxInclusive '{_MAX_WEIGHT}' for type 'ResourceRecordSetWeight': {element.text}"
            case "Region" if element.text not in REGIONS:
                return f"{_BREACH} enumeration for type 'ResourceRecordSetRegion': '{element.text}'"
            case "Failover" if element.text not in ("PRIMARY", "SECONDARY"):
                return f"{_BREACH} enumeration for type 'ResourceRecordSetFailover': '{element.text}'"
            case "GeoLocation" if problem := _of_place({tag: inner.text for tag, inner in inside.items()}):
                return problem
            case "GeoProximityLocation" if problem := _of_location(inside):
                return problem
    return None


def _of_place(place: Mapping[str, str]) -> str | None:
    """https://docs.aws.amazon.com/Route53/latest/APIReference/API_GeoLocation.html."""
    continent, country, state = (place.get(f"{each}Code", "") for each in ("Continent", "Country", "Subdivision"))
    if bool(continent) == bool(country) or (state and country != "US"):
        return "Invalid request: ContinentCode goes with no other code, and SubdivisionCode with the country US only"
    if continent and continent not in ("AF", "AN", "AS", "EU", "OC", "NA", "SA"):
        return f"{_BREACH} enumeration for type 'GeoLocationContinentCode': '{continent}'"
    if country and not re.fullmatch(r"[A-Z]{2}|\*", country):
        return f"{_BREACH} pattern for type 'GeoLocationCountryCode': '{country}'"
    if state and state not in _STATES:
        return f"Invalid request: the subdivision {state} of the country US is not supported"
    return None


def _of_location(inside: Mapping[str, Element]) -> str | None:
    """https://docs.aws.amazon.com/Route53/latest/APIReference/API_GeoProximityLocation.html and API_Coordinates.html."""
    places = [tag for tag in ("AWSRegion", "LocalZoneGroup", "Coordinates") if tag in inside]
    if len(places) != 1:
        return "Invalid request: Expected exactly one of AWSRegion, LocalZoneGroup, Coordinates"
    bias = inside["Bias"].text if "Bias" in inside else "0"
    if not re.fullmatch("-?[0-9]{1,2}", bias) or abs(int(bias)) > _MAX_BIAS:
        return f"{_BREACH} maxInclusive '{_MAX_BIAS}' for type 'Bias': {bias}"
    point = {inner.tag: inner.text for inner in inside[places[0]].children}
    for tag, most in (("Latitude", 90), ("Longitude", 180)) if places == ["Coordinates"] else ():
        text = point.get(tag, "")
        if not re.fullmatch(rf"[-+]?[0-9]{{1,{len(str(most))}}}(\.[0-9]{{0,2}})?", text) or abs(float(text)) > most:
            return f"{_BREACH} pattern for type '{tag}': '{text}'"
    return None


def problem_of_set(wanted: StoredSet, private: bool, limits: Limits) -> str | None:
    """What is wrong with a set whatever stands beside it."""
    key, alias, policy = wanted.key, wanted.alias, policy_of(wanted)
    tag = "" if policy is None else policy.tag
    if limits.one_value and tag in ("Weight", "Region") and len(wanted.values) > 1:
        # API, Weight and Region: "You can only specify one ResourceRecord". Many zones have more: it is not enforced.
        return _cannot(key, f"a {_WORDS[tag]} set must have exactly one value")
    if tag == "MultiValueAnswer" and alias is not None:
        return _cannot(key, "multivalue answer alias records are not supported")  # API, MultiValueAnswer
    if tag == "MultiValueAnswer" and key.type in ("CNAME", "NS"):
        return _cannot(key, f"a multivalue answer set cannot be of type {key.type}")  # Guide, routing-policy-multivalue
    if policy is not None and tag == "Failover":
        if alias is not None and not alias.evaluate_health:
            # API, Failover: "you must also include the EvaluateTargetHealth element and set the value to true".
            return _cannot(key, "a failover alias must evaluate the health of its target")
        if alias is None and policy.text == "PRIMARY" and not wanted.health_check_id:
            return _cannot(key, "a primary failover set must have a health check")  # Guide, routing-policy-failover
    if alias is not None and alias.zone_id == CLOUDFRONT:
        # API, AliasTarget: "can't be created in a private zone"; EvaluateTargetHealth: "You can't set" it to true.
        if private:
            return _cannot(key, "an alias to a CloudFront distribution cannot be in a private zone")
        if alias.evaluate_health:
            return _cannot(key, "an alias to a CloudFront distribution cannot evaluate the health of its target")
    return None


def problems_beside(wanted: StoredSet, others: Iterator[StoredSet], limits: Limits) -> str | None:
    """What is wrong with a set beside others of its name and type, all with set identifiers.

    API, Weight, Region, GeoLocation, Failover: no set of another policy; one set of each region, each place, and each role.
    """
    policy, beside = policy_of(wanted), list(others)
    if policy is None or not beside:
        return None
    if any((other := policy_of(each)) is None or other.tag != policy.tag for each in beside):
        word = _WORDS.get(policy.tag, policy.tag)
        return _cannot(wanted.key, f"a non-{word} set exists with the same name and type.")
    if policy.tag in ("Region", "GeoLocation", "Failover") and any(policy_of(each) == policy for each in beside):
        return _cannot(wanted.key, f"a {_WORDS[policy.tag]} set of the same value exists with the same name and type.")
    if len(beside) >= _MOST.get(policy.tag, len(beside) + 1):
        return _cannot(wanted.key, f"{len(beside)} {_WORDS[policy.tag]} sets exist with the same name and type.")
    if limits.one_ttl and any(each.ttl != wanted.ttl for each in beside if None not in (each.ttl, wanted.ttl)):
        # Guide, resource-record-sets-values-shared, TTL: the same for all sets of a group. It is not known to be enforced.
        return _cannot(wanted.key, "the other sets of the same name and type have another TTL.")
    return None


def _cannot(key: SetKey, why: str) -> str:
    of_set = f" SetIdentifier {key.identifier}" if key.identifier else ""
    return f"RRSet with DNS name {key.name}, type {key.type},{of_set} cannot be created as {why}"
