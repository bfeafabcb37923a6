"""Reasons: why kubesync does not do what a Service asks for. One list for problems, refusals, reports, the audit and people.

A code is a stable CamelCase word, so programs may compare it. To add one: a row in ``REASONS``, the same row in the table of
``docs/reasons.md``, and code that gives it (in a ``Problem``, ``Outcome``, ``OpenMark`` or ``Finding``). For a ``Finding``, also
name it in ``docs/explain.md``. Tests fail if one of these is missing: also for a listed code that nothing gives.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True)
class Reason:
    """``text``: what is wrong, and what kubesync does about it. ``advice``: what a person can do."""

    code: str
    text: str
    advice: str


REASONS: Final = (
    # What a Service asks for
    Reason(
        "InvalidName",
        "The name is not valid in DNS: labels have 1 to 63 characters, names at most 253. kubesync leaves it out.",
        "Correct the annotation, the template, or the endpoint's host name.",
    ),
    Reason(
        "NoZone",
        "No hosted zone of the cluster fits the name. kubesync leaves it out.",
        "Correct the name, or register the cluster with a zone that holds it (`kubesync cluster add --replace`).",
    ),
    Reason(
        "InvalidExclude",
        "The annotation kubesync.io/exclude is neither true nor false. It counts as false.",
        'Write "true" or "false".',
    ),
    Reason(
        "InvalidInclude",
        "The annotation kubesync.io/include is neither true nor false. It counts as false.",
        'Write "true" or "false".',
    ),
    Reason(
        "InvalidTtl",
        "The TTL is neither seconds nor a duration, or it is out of range. kubesync uses the cluster's default.",
        "Write seconds or a duration such as 1m30s, from 1 to 2147483647 seconds.",
    ),
    Reason(
        "InvalidAlias",
        "The alias annotation is neither true nor false. kubesync uses the cluster's setting.",
        'Write "true" or "false".',
    ),
    Reason(
        "NoAliasTarget",
        "The Service asks for an alias, but kubesync does not know the host name as a load balancer of AWS. It publishes "
        "a CNAME.",
        "Remove the alias annotation, or use the load balancer's own host name as target.",
    ),
    Reason(
        "InvalidSetIdentifier",
        "The set identifier is not 1 to 128 printable ASCII characters. kubesync publishes nothing for the Service.",
        "Correct the annotation.",
    ),
    Reason(
        "InvalidWeight",
        "The weight is not a whole number from 0 to 255. kubesync uses 1.",
        "Correct the annotation.",
    ),
    Reason(
        "WeightWithoutIdentifier",
        "The Service has a weight but no set identifier. The weight has no effect.",
        "Add the set-identifier annotation, or remove the weight.",
    ),
    Reason(
        "InvalidTarget",
        "An entry of the target annotation is neither an IP address nor a DNS name. kubesync leaves it out.",
        "Correct the annotation.",
    ),
    Reason(
        "InvalidClusterIp",
        "A cluster IP is not a valid IP address. kubesync leaves it out.",
        "Look at the Service's spec.clusterIPs.",
    ),
    Reason(
        "InvalidStatus",
        "An entry of the load balancer's status is neither an IP address nor a DNS name. kubesync leaves it out.",
        "Look at the Service's status.loadBalancer, and at the controller that writes it.",
    ),
    Reason(
        "InvalidExternalName",
        "The external name is not a DNS name. kubesync publishes nothing.",
        "Correct the Service's spec.externalName.",
    ),
    Reason(
        "ExternalNameIsAddress",
        "The external name is an IP address. DNS would read it as a name of digits, so kubesync publishes nothing.",
        "Use a Service without selector and an EndpointSlice, or the target annotation.",
    ),
    Reason(
        "InvalidAddress",
        "An endpoint's address is not an IP address. kubesync leaves it out of records and upstreams.",
        "Look at the Service's EndpointSlices. Those of address type FQDN have no addresses.",
    ),
    Reason(
        "EndpointsFqdn",
        "An EndpointSlice of the Service has the address type FQDN: it holds host names instead of addresses. kubesync "
        "leaves them out.",
        "Use addresses (IPv4 or IPv6) in the EndpointSlice, or make the Service an ExternalName.",
    ),
    Reason(
        "EndpointsTruncated",
        "The Endpoints object is cut at its limit of 1,000 addresses. Some addresses are missing.",
        "Register the cluster with --endpoints-source endpointslices.",
    ),
    Reason(
        "NoClusterIp",
        "The annotation internal-hostname asks for a name, but the Service has no cluster IP. kubesync leaves the name "
        "out.",
        "Use hostname, or give the Service a cluster IP.",
    ),
    Reason(
        "CnameLoop",
        "The name would point to itself. kubesync leaves it out.",
        "Correct the target or the external name.",
    ),
    Reason(
        "CnameConflict",
        "The Service asks for a CNAME and other records at one name. DNS forbids this (RFC 1034). kubesync leaves the "
        "CNAME out.",
        "Choose another name for one of them.",
    ),
    Reason(
        "CnameAtApex",
        "DNS allows no CNAME at the apex of a zone. kubesync leaves it out.",
        "Use --load-balancer-alias for load balancers of AWS, or choose another name.",
    ),
    Reason(
        "TooManyValues",
        "The record set has more values than Route 53 allows. kubesync publishes the first ones in order.",
        "Spread the endpoints over several Services.",
    ),
    Reason(
        "TooManyNodes",
        "The upstream has more nodes than it can hold. kubesync keeps ready nodes first, then primaries before backups. "
        "It leaves out the rest.",
        "Spread the endpoints over several Services, or the members over several named upstreams.",
    ),
    Reason(
        "MissingUpstream",
        "A member of the named upstream does not exist: a Service, its port, or another named upstream. This member adds "
        "no nodes. The other members are complete.",
        "Create it, or remove this member with `kubesync upstream add ... --replace`.",
    ),
    Reason(
        "UpstreamCycle",
        "A named upstream includes itself through others, or the nesting is too deep. At this place it adds no nodes.",
        "Remove one of the members with `kubesync upstream add ... --replace`.",
    ),
    # What others want or have
    Reason(
        "NameTaken",
        "Another Service owns the name. This Service waits and gets the name when the owner lets it go.",
        "Do nothing if this is intended. Otherwise remove the name from the other Service, or choose another name.",
    ),
    Reason(
        "Conflict",
        "Another record set is in the way at this name. kubesync did not make it, or it belongs to another Service and "
        "cannot share the name (one is simple and one is weighted, or one is a CNAME). kubesync never touches it. It checks "
        "again, often at first and every hour later, and at once when the other Service's set goes.",
        "To let kubesync take over the record set (it comes from another controller, or from before tables were lost), "
        "run `kubesync recover`: it shows what it would take over unchanged (docs/migration.md). Otherwise remove the "
        "foreign record set, choose another name, or give every Service that shares the name a set-identifier. `kubesync "
        "resync` checks at once.",
    ),
    Reason(
        "ChangedByHand",
        "Somebody else changed or deleted a record set of kubesync. kubesync does not overwrite it blindly.",
        "Run `kubesync resync`. It corrects the record set.",
    ),
    # What Route 53 says
    Reason(
        "ZoneFull",
        "The hosted zone holds as many record sets as its limit allows. Deletions go on, and creations wait.",
        "Have AWS raise the zone's limit, or remove record sets that nobody needs.",
    ),
    Reason(
        "TooLargeForBatch",
        "The changes at one name do not fit into one change batch. They wait.",
        "Publish fewer values at this name, or raise KUBESYNC_BATCH_ELEMENTS and KUBESYNC_BATCH_CHARACTERS.",
    ),
    Reason(
        "Rejected",
        "Route 53 rejects the record set. kubesync tries it again with backoff. All other changes go on.",
        "Read the message of Route 53, and correct what the Service asks for.",
    ),
    Reason(
        "ZoneBlocked",
        "kubesync cannot write to the hosted zone now. Changes wait.",
        "Read the zone's problem in `kubesync status`. The cause is permissions, the zone itself, or its journal.",
    ),
    # What kubesync does not know, or does not do by itself
    Reason(
        "Unreadable",
        "kubesync cannot read the newest version of an object. It keeps what it read before.",
        "Look at the object that the message names. kubesync reads its next version.",
    ),
    Reason(
        "DeletionHeld",
        "A list lacks the object and many others, so kubesync does not trust the list. It keeps the object's records and "
        "upstreams.",
        "Make sure that the objects are gone. Then run `kubesync resync --cluster NAME --force`.",
    ),
    Reason(
        "Unplannable",
        "kubesync has a bug: it could not plan the Service. It keeps the Service's records and upstreams.",
        "Report it, with the log of the session.",
    ),
    Reason(
        "NotListedYet",
        "A listener has no complete list yet, and unknown is not empty. kubesync keeps what depends on this list.",
        "See the listener's last error in `kubesync status`.",
    ),
    Reason(
        "KeptByPolicy",
        "The cluster's policy does not allow the change. kubesync keeps the record set.",
        "Do nothing if this is intended. Otherwise change it by hand, or change the cluster's --policy.",
    ),
)

REASON_OF_CODE: Final[Mapping[str, Reason]] = {reason.code: reason for reason in REASONS}


def advice_for(code: str) -> str:
    """What a person can do. Empty if the list lacks the code: another release may have stored it."""
    reason = REASON_OF_CODE.get(code)
    return "" if reason is None else reason.advice
