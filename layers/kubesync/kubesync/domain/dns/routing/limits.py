"""What Route 53 refuses of routing policies, whatever else stands at the name. What stands beside what: ``policies``, ``domain.plan``.

    policy       record set                                       refused, source
    ------       ----------                                       ---------------
    multivalue   an alias                                         API, MultiValueAnswer
    multivalue   CNAME, NS                                        developer guide, "Multivalue answer routing"
    failover     an alias that does not evaluate its target       API, Failover
    PRIMARY      no alias, and no health check                    developer guide, "Failover routing"
    any          an alias to CloudFront, in a private zone        API, AliasTarget: "can't be created in a private zone"
    any          an alias to CloudFront that evaluates it         API, EvaluateTargetHealth: "You can't set" it to true

API: https://docs.aws.amazon.com/Route53/latest/APIReference/API_ResourceRecordSet.html and API_AliasTarget.html.
"""

from __future__ import annotations

from kubesync.domain.dns.elb_zones import CLOUDFRONT_ZONE
from kubesync.domain.dns.records import RecordSet
from kubesync.domain.dns.routing.policies import PRIMARY, Failover, Multivalue


def why_not_possible(record_type: str, record_set: RecordSet, *, private: bool) -> str:
    """Why Route 53 refuses a set, in words; empty if it does not. ``private``: in a private zone."""
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
