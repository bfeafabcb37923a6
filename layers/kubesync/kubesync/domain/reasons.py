"""Reasons: why something is not as a Service asks for it. One list, for problems, refusals, reports, the audit and people.

A code is a stable CamelCase word: programs may compare it. ``docs/reasons.md`` shows this list; tests hold both together, and
refuse a code that is used in the source and missing here.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True)
class Reason:
    """``text``: what is the matter, and what kubesync does about it. ``advice``: what a person can do."""

    code: str
    text: str
    advice: str


REASONS: Final = (
    # What a Service asks for
    Reason(
        "InvalidName",
        "A name cannot stand in DNS (labels of 1 to 63 characters, names of at most 253). It is left out.",
        "Correct the annotation, the template, or the endpoint's host name.",
    ),
    Reason(
        "NoZone",
        "A name fits none of the cluster's hosted zones. It is left out.",
        "Correct the name, or register the cluster with a zone that holds it (`kubesync cluster add --replace`).",
    ),
    Reason(
        "InvalidExclude",
        "The annotation kubesync.io/exclude is neither true nor false. The Service is not left out.",
        'Write "true" or "false".',
    ),
    Reason(
        "InvalidInclude",
        "The annotation kubesync.io/include is neither true nor false. It counts as false.",
        'Write "true" or "false".',
    ),
    Reason(
        "InvalidTtl",
        "The TTL is neither seconds nor a duration, or out of range. The cluster's default is used.",
        "Write seconds or a duration such as 1m30s, from 1 to 2147483647 seconds.",
    ),
    Reason(
        "InvalidAlias",
        "The alias annotation is neither true nor false. The cluster's setting is used.",
        'Write "true" or "false".',
    ),
    Reason(
        "NoAliasTarget",
        "An alias is asked for, and the host name is no load balancer of AWS whose hosted zone is known. It becomes a CNAME.",
        "Take the alias annotation away, or use the load balancer's own host name as target.",
    ),
    Reason(
        "InvalidSetIdentifier",
        "The set identifier is not 1 to 128 printable ASCII characters. Nothing is published.",
        "Correct the annotation.",
    ),
    Reason(
        "InvalidWeight",
        "The weight is not a whole number from 0 to 255. 1 is used.",
        "Correct the annotation.",
    ),
    Reason(
        "WeightWithoutIdentifier",
        "A weight without a set identifier has no effect.",
        "Add the set-identifier annotation, or take the weight away.",
    ),
    Reason(
        "InvalidTarget",
        "An entry of the target annotation is neither an IP address nor a DNS name. It is left out.",
        "Correct the annotation.",
    ),
    Reason(
        "InvalidClusterIp",
        "A cluster IP is not an IP address. It is left out.",
        "Look at the Service's spec.clusterIPs.",
    ),
    Reason(
        "InvalidStatus",
        "The load balancer's status holds something that is neither an IP address nor a DNS name. It is left out.",
        "Look at the Service's status.loadBalancer and at the controller that writes it.",
    ),
    Reason(
        "InvalidExternalName",
        "The external name is not a DNS name. Nothing is published.",
        "Correct the Service's spec.externalName.",
    ),
    Reason(
        "ExternalNameIsAddress",
        "The external name is an IP address, which DNS takes for a name of digits. Nothing is published.",
        "Use a Service without selector and an EndpointSlice, or the target annotation.",
    ),
    Reason(
        "InvalidAddress",
        "An endpoint's address is not an IP address. It is left out of records and upstreams.",
        "Look at the Service's EndpointSlices; those of address type FQDN have no addresses.",
    ),
    Reason(
        "EndpointsFqdn",
        "An EndpointSlice of the Service has the address type FQDN: host names, which are no nodes. They are left out.",
        "Give addresses (IPv4 or IPv6) in the EndpointSlice, or make the Service an ExternalName.",
    ),
    Reason(
        "EndpointsTruncated",
        "The Endpoints object is over its capacity of 1,000 addresses: some are missing in it.",
        "Register the cluster with --endpoints-source endpointslices.",
    ),
    Reason(
        "NoClusterIp",
        "A name is asked for with internal-hostname, and the Service has no cluster IP. It is left out.",
        "Use hostname, or give the Service a cluster IP.",
    ),
    Reason(
        "CnameLoop",
        "A name would lead to itself. It is left out.",
        "Correct the target or the external name.",
    ),
    Reason(
        "CnameConflict",
        "A CNAME would stand beside other records of the same Service, which DNS forbids (RFC 1034). It is left out.",
        "Choose another name for one of them.",
    ),
    Reason(
        "CnameAtApex",
        "A CNAME cannot stand at the apex of a zone. It is left out.",
        "Use --load-balancer-alias for load balancers of AWS, or another name.",
    ),
    Reason(
        "TooManyValues",
        "More values than one record set can hold. The first in order are published.",
        "Spread the endpoints over several Services.",
    ),
    Reason(
        "TooManyNodes",
        "More nodes than one upstream can hold. Ready ones stay before others, primaries before backups; the rest is left out.",
        "Spread the endpoints over several Services, or the members over several named upstreams.",
    ),
    Reason(
        "MissingUpstream",
        "A named upstream is made of something that is not there: the Service or its port, or another named upstream. It "
        "contributes no nodes; the rest is as it should be.",
        "Create it, or take it out with `kubesync upstream add ... --replace`.",
    ),
    Reason(
        "UpstreamCycle",
        "A named upstream includes itself by way of others, or is nested too deeply. There it contributes no nodes.",
        "Take one of them out with `kubesync upstream add ... --replace`.",
    ),
    # What others want or have
    Reason(
        "NameTaken",
        "Another Service owns the name. This one waits, and gets it when it is let go.",
        "Nothing, if that is as meant; else take the name away from the other Service, or choose another one.",
    ),
    Reason(
        "Conflict",
        "A record set stands at the name that is not ours, or is another Service's and cannot stand beside ours (a simple and a "
        "weighted one). It is never touched; kubesync looks again, often at first and every hour later on.",
        "Is it to become kubesync's (another controller's name, or one from before tables were lost): `kubesync recover` says what it "
        "takes over as it stands (docs/migration.md). Else remove the foreign record set, choose another name, or give every Service "
        "that shares the name a set-identifier; `kubesync resync` looks at once.",
    ),
    Reason(
        "ChangedByHand",
        "A record set of ours was changed or deleted by somebody else. It is not overwritten blindly.",
        "Run `kubesync resync`, which mends it.",
    ),
    # What Route 53 says
    Reason(
        "ZoneFull",
        "The hosted zone has as many record sets as it can have. Deletions go through, creations wait.",
        "Have the zone's limit raised, or remove what is not needed.",
    ),
    Reason(
        "TooLargeForBatch",
        "The changes at one name are more than one change batch can hold. They wait.",
        "Publish fewer values at this name, or raise KUBESYNC_BATCH_ELEMENTS and KUBESYNC_BATCH_CHARACTERS.",
    ),
    Reason(
        "Rejected",
        "Route 53 rejects the record set. Everything else goes through; this one is tried again with backoff.",
        "Read the message of Route 53, and correct what the Service asks for.",
    ),
    Reason(
        "ZoneBlocked",
        "Nothing can be written to the hosted zone for now. Changes wait.",
        "Read the zone's problem in `kubesync status`: permissions, the zone itself, or its journal.",
    ),
    # What kubesync does not know, or does not do by itself
    Reason(
        "Unreadable",
        "The newest version of an object could not be understood. What was understood last stays as it is.",
        "Look at the object that is named; its next version is read again.",
    ),
    Reason(
        "DeletionHeld",
        "A list lacks the object, and so many others that it is not believed. Its outputs stay.",
        "Make sure that the objects are gone, then run `kubesync resync --cluster NAME --force`.",
    ),
    Reason(
        "Unplannable",
        "A fault of kubesync: the Service could not be planned. Its outputs stay as they are.",
        "Report it, with the log of the session.",
    ),
    Reason(
        "NotListedYet",
        "A listener has not listed completely yet, and unknown is not empty. What depends on it stays as it is.",
        "See `kubesync status` for the listener's last error.",
    ),
    Reason(
        "KeptByPolicy",
        "The cluster's policy does not allow the change. The record set stays as it is.",
        "Nothing, if that is as meant; else change it by hand, or the cluster's --policy.",
    ),
)
"""Every reason there is. To add one: a row here, and the same row in ``docs/reasons.md``."""

REASON_OF_CODE: Final[Mapping[str, Reason]] = {reason.code: reason for reason in REASONS}


def advice_for(code: str) -> str:
    """What a person can do; empty for a code that is not in the list, as an other release may have stored one."""
    reason = REASON_OF_CODE.get(code)
    return "" if reason is None else reason.advice
