"""Reasons: why kubesync does not do what a Service asks for. One list for problems, refusals, reports, the audit and people.

A code is a stable CamelCase word, so programs may compare it. ``docs/reasons.md`` says what is wrong under each code. To add one:
a line in ``ADVICE``, a row in the table of that page, and code that gives it (in a ``Problem``, ``Outcome``, ``OpenMark`` or
``Finding``). For a ``Finding``, also name it in ``docs/explain.md``. See whether ``WITHHOLDING`` or
``BY_ITSELF`` should name it, and whether ``kubesync wait`` may go on with it (``NOTHING_LEFT_OUT``). Tests fail if one of these
is missing: also for a listed code that nothing gives.
"""

from collections.abc import Mapping
from typing import Final

ADVICE: Final[Mapping[str, str]] = {
    # What a Service asks for
    "InvalidName": "Correct the annotation, the template, or the endpoint's host name.",
    "NoZone": "Correct the name, or give the cluster a zone that holds it (`kubesync cluster set NAME --zone ID,ID`).",
    "InvalidExclude": 'Write "true" or "false".',
    "InvalidInclude": 'Write "true" or "false".',
    "InvalidTtl": "Write seconds or a duration such as 1m30s, from 1 second to 2147483647 or the cluster's --max-ttl.",
    "InvalidAlias": 'Write "true" or "false".',
    "InvalidEvaluateTargetHealth": 'Write "true" or "false".',
    "UnsupportedAnnotation": "Remove the annotation, or let another controller publish the Service (kubesync.io/exclude).",
    "OtherController": (
        "Do nothing if another controller publishes the Service. Otherwise remove the annotation, or write dns-controller or kubesync."
    ),
    "UnknownAnnotation": "Correct or remove the annotation. docs/annotations.md lists all that kubesync knows.",
    "NoAliasTarget": "Remove the alias annotation, use the target's own host name, or name its hosted zone (aws-target-hosted-zone).",
    "InvalidSetIdentifier": "Correct the annotation.",
    "InvalidWeight": "Correct the annotation.",
    "WeightWithoutIdentifier": "Add the set-identifier annotation, or remove the weight.",
    "InvalidHostnameSource": "Write annotation-only or defined-hosts-only, or remove the annotation.",
    "RoutingNotPossible": "Correct what the message names. docs/names.md lists what each routing policy needs.",
    "InvalidTarget": "Correct the annotation.",
    "InvalidClusterIp": "Look at the Service's spec.clusterIPs.",
    "InvalidStatus": "Look at the addresses in the object's status, and at the controller that writes them.",
    "InvalidExternalName": "Correct the Service's spec.externalName.",
    "ExternalNameIsAddress": "Use a Service without selector and an EndpointSlice, or the target annotation.",
    "InvalidAddress": "Look at the Service's EndpointSlices. Those of address type FQDN have no addresses.",
    "AddressNotAllowed": "Remove the address, or have the cluster's operator extend the option that the message names.",
    "EndpointsFqdn": "Use addresses (IPv4 or IPv6) in the EndpointSlice, or make the Service an ExternalName.",
    "EndpointsTruncated": "Register the cluster with --endpoints-source endpointslices.",
    "NoClusterIp": "Use hostname, or give the Service a cluster IP.",
    "CnameLoop": "Correct the target or the external name.",
    "CnameConflict": "Choose another name for one of them.",
    "CnameAtApex": "Use --load-balancer-alias for load balancers of AWS, or choose another name.",
    "TooManyValues": "Spread the endpoints over several Services.",
    "TooManyNodes": "Spread the endpoints over several Services, or the members over several named upstreams.",
    "MissingUpstream": "Create it, or remove this member with `kubesync upstream add ... --replace`.",
    "UpstreamCycle": "Remove one of the members with `kubesync upstream add ... --replace`.",
    # What the cluster's rules of names do not allow
    "OutsideDomains": (
        "Choose a name in the cluster's domains, or have its operator add the domain: --domain-filter, or --namespace-domains for "
        "this namespace (docs/clusters.md). A domain that --exclude-domains names must leave that list."
    ),
    "NameReserved": (
        "Choose another name. No option allows this one: it is for the journal, or the cluster's --template keeps it for another "
        "namespace, or a wildcard would answer for several."
    ),
    "WildcardNotAllowed": "Choose a name without *, or have the cluster's operator add --allow-wildcards.",
    "ApexNotAllowed": "Choose a name below the zone's name or the domain, or have the cluster's operator add --allow-apex.",
    "UnderscoreNotAllowed": "Choose a name without such labels, or have the cluster's operator add --allow-underscores.",
    "TooManyNames": (
        "Ask for fewer names, or have the cluster's operator raise --max-names-per-service or --max-names-per-namespace. "
        "Names that others of the namespace let go come by themselves."
    ),
    "TooManyWaits": (
        "Do nothing: it stands in line when others of its namespace leave. Or have the cluster's operator raise --max-waits-per-namespace."
    ),
    "TooManyRecordSets": (
        "Do nothing: they come when others of the namespace go. Or have the cluster's operator raise --max-record-sets-per-namespace."
    ),
    # What others want or have
    "NameTaken": "Do nothing if this is intended. Otherwise remove the name from the other Service, or choose another name.",
    "Conflict": (
        "`kubesync recover` takes over a foreign record set (from another controller, or from before tables were lost) only if it is "
        "exactly as wanted (docs/migration.md). If its form differs, change the Service or the record set so that both are equal, "
        "remove the foreign one, or leave it. Or choose another name, or give every Service that shares the name a "
        "set-identifier. `kubesync resync` checks at once."
    ),
    "ChangedByHand": "Run `kubesync resync`. It corrects the record set.",
    # What Route 53 says
    "ZoneFull": "Have AWS raise the zone's limit, or remove record sets that nobody needs.",
    "TooLargeForBatch": "Publish fewer values at this name, or raise KUBESYNC_BATCH_ELEMENTS and KUBESYNC_BATCH_CHARACTERS.",
    "NameNotAllowed": (
        "Choose another name, or allow this one: with the template's parameter RecordNames, or in the policy of the zone's role in "
        "another account."
    ),
    "Rejected": "Read the message of Route 53, and correct what the Service asks for.",
    "ZoneBlocked": "Read the zone's problem in `kubesync status`. The cause is permissions, the zone itself, or its journal.",
    # What kubesync does not know, or does not do by itself
    "Unreadable": (
        "Look at the object that the message names. kubesync reads its next version. If a list had no room for it, raise MemorySize or "
        "make the objects of its namespace smaller."
    ),
    "DeletionHeld": "Make sure that the objects are gone. Then run `kubesync resync --cluster NAME --force`.",
    "Unplannable": "Report it, with the log of the session.",
    "SetAside": (
        "Spread its endpoints over several Services, or give the function more memory. Then run `kubesync resync --cluster NAME`: it tries "
        "again at once. kubesync does so by itself once the Service has fewer endpoints, and later and later."
    ),
    "NotListedYet": "See the listener's last error in `kubesync status`.",
    "KeptByPolicy": "Do nothing if this is intended. Otherwise change it by hand, or change the cluster's --policy.",
}
WITHHOLDING: Final = ("UnsupportedAnnotation", "OtherController", "RoutingNotPossible")
"""With one of these, a Service keeps the names that it holds and gets no others."""

BY_ITSELF: Final = ("ZoneFull", "ZoneBlocked", "NotListedYet")
"""Conditions of a zone or of a cluster, not of one key: alarms tell its operator, and the key goes on by itself once they are over."""


def waits_for_person(code: str) -> bool:
    """Whether only a person can mend what has this code. Not so for a code that this list lacks: rather an alarm too many."""
    return code in ADVICE and code not in BY_ITSELF


def advice_for(code: str) -> str:
    """What a person can do. Empty if the list lacks the code: another release may have stored it."""
    return ADVICE.get(code, "")
