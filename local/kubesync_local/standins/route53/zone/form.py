"""The form of a change batch: what the API refuses with InvalidInput before it reads any zone.

https://docs.aws.amazon.com/Route53/latest/APIReference/API_ChangeResourceRecordSets.html and API_ResourceRecordSet.html
give the ranges. Route 53 names the broken part of its XML schema; the texts here only resemble that.
"""

from collections.abc import Sequence

from kubesync_local.standins.route53.zone.model import ROUTING_ELEMENTS, Change, Limits, Refusal
from kubesync_local.standins.route53.zone.routing import breach_of_form
from kubesync_local.standins.route53.zone.values import RECORD_TYPES

_ACTIONS = ("CREATE", "DELETE", "UPSERT")
_MAX_TTL = 2_147_483_647
_MAX_NAME_CHARACTERS = 1_024
_MAX_IDENTIFIER_CHARACTERS = 128
_BREACH = "Invalid XML ; Value is not facet-valid with respect to"


def rules_of_form(changes: Sequence[Change], limits: Limits) -> Refusal | None:
    """The first violation of the API's form, or None."""
    if not changes:
        return _invalid("Invalid XML ; The content of element 'Changes' is not complete. One of 'Change' is expected.")
    for change in changes:
        message = _breach(change, limits)
        if message is not None:
            return _invalid(message)
    return None


def _invalid(message: str) -> Refusal:
    return Refusal("InvalidInput", (message,))


def _breach(change: Change, limits: Limits) -> str | None:
    wanted = change.record_set
    key = wanted.key
    if change.action not in _ACTIONS:
        return f"{_BREACH} enumeration [CREATE, DELETE, UPSERT]: '{change.action}'"
    if key.type not in RECORD_TYPES:
        return f"{_BREACH} enumeration for type 'RRType': '{key.type}'"
    if len(change.typed_name) > _MAX_NAME_CHARACTERS or len(key.identifier) > _MAX_IDENTIFIER_CHARACTERS:
        return f"{_BREACH} maxLength of a name or an identifier: '{change.typed_name}'"
    if wanted.ttl is not None and not 0 <= wanted.ttl <= _MAX_TTL:
        return f"{_BREACH} maxInclusive '{_MAX_TTL}' for type 'TTL': {wanted.ttl}"
    if any(len(value) > limits.value_characters for value in wanted.values):
        return f"{_BREACH} maxLength '{limits.value_characters}' for type 'RData'."
    if (problem := breach_of_form(wanted)) is not None:
        return problem
    where = (
        f"Change with [Action={change.action}, Name={change.typed_name}, Type={key.type}, "
        f"SetIdentifier={key.identifier or 'null'}]"
    )
    # API, AliasTarget and ResourceRecords: an alias has neither TTL nor values, every other set has both.
    by_policy = any(element.tag == "TrafficPolicyInstanceId" for element in wanted.routing)
    forms = [wanted.alias is not None, wanted.ttl is not None and bool(wanted.values), by_policy]
    halves = (wanted.ttl is not None) != bool(wanted.values)
    if sum(forms) != 1 or halves:
        found = "none" if not any(forms) else "more than one"
        return (
            "Invalid request: Expected exactly one of [AliasTarget, all of [TTL, and ResourceRecords], "
            f"or TrafficPolicyInstanceId], but found {found} in {where}"
        )
    # API, SetIdentifier: required with any routing policy other than simple, and only with one.
    policies = [element.tag for element in wanted.routing if element.tag != "TrafficPolicyInstanceId"]
    if policies and not key.identifier:
        return f"Invalid request: Missing field 'SetIdentifier' in {where}"
    if key.identifier and len(policies) != 1:
        return f"Invalid request: Expected exactly one of {', '.join(ROUTING_ELEMENTS)} in {where}"
    return None
