"""What Route 53 accepts: a batch and the sets of a zone in, the changed names or a refusal out. Pure.

https://docs.aws.amazon.com/Route53/latest/APIReference/API_ChangeResourceRecordSets.html is meant by "API" below;
https://docs.aws.amazon.com/Route53/latest/DeveloperGuide/DNSLimitations.html by "Quotas". The texts of messages
come from reports by users of external-dns, octodns, dnscontrol and the Terraform provider; the one for a CNAME of two values is a guess.

    a batch is refused as      when
    ---------------------      ----
    InvalidInput               it does not have the API's form: rules_of_form
    NoSuchHealthCheck          a set refers to a health check that does not exist (API, Errors)
    InvalidChangeBatch         it is over a limit, one set is changed twice, a name or value is not valid,
                               or a change does not fit what the zone holds; each bad change gets a message
"""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence

from kubesync_local.standins.route53.zone.form import rules_of_form
from kubesync_local.standins.route53.zone.model import Change, Limits, Refusal, SetKey, StoredSet
from kubesync_local.standins.route53.zone.names import NameRefusedError, lies_in, listing_form
from kubesync_local.standins.route53.zone.routing import problem_of_set, problems_beside
from kubesync_local.standins.route53.zone.values import ValueRefusedError, same_form

type SetsAtName = Mapping[tuple[str, str], StoredSet]
type Sets = Mapping[str, SetsAtName]

_ONE_CHANGE = (("CREATE",), ("DELETE",), ("UPSERT",))
# "Deletes the first set and creates the second in a single operation" (API, Change Batches and Transactional Changes).
_REPLACEMENT = (("DELETE", "CREATE"), ("DELETE", "UPSERT"))


def apply(
    sets: Sets, changes: Sequence[Change], *, zone_id: str, zone_name: str, limits: Limits, private: bool = False
) -> dict[str, dict[tuple[str, str], StoredSet]] | Refusal:
    """Judge a batch as a whole.

    Args:
        sets: what the zone holds: name in listing form → (type, identifier) → set. Not changed.
        zone_name: in listing form.

    Returns:
        Every changed name with all its sets afterwards, or why nothing is applied.
    """
    refusal = rules_of_form(changes, limits)
    if refusal is not None:
        return refusal
    if over := list(_over_limits(changes, limits)):
        return _refused(over, limits)
    if unknown := _unknown_health_check(changes, limits):
        return Refusal("NoSuchHealthCheck", (f"A health check with id {unknown} does not exist.",))
    messages = list(_changed_twice(changes))
    work = _Work(sets, zone_id, zone_name, limits, private=private)
    for change in changes:
        # One message per change; a bad change does not affect the later ones.
        problem = _problem_of_content(change, zone_name, limits) or work.problem(change)
        if problem is None:
            work.apply(change)
        else:
            messages.append(problem)
    messages.extend(work.problems_at_the_end(limits))
    if messages:
        return _refused(messages, limits)
    return work.touched


def _refused(messages: Sequence[str], limits: Limits) -> Refusal:
    unique = tuple(dict.fromkeys(messages))
    return Refusal("InvalidChangeBatch", unique[: limits.messages])


def _over_limits(changes: Sequence[Change], limits: Limits) -> Iterator[str]:
    """Quotas: 1,000 ResourceRecord elements and 32,000 characters of Value, with UPSERT each counted twice."""
    elements = characters = 0
    for change in changes:
        times = 2 if change.action == "UPSERT" else 1
        elements += times * max(1, len(change.record_set.values))
        characters += times * sum(map(len, change.record_set.values))
    if elements > limits.elements:
        yield f"Number of records limit of {limits.elements} exceeded."
    if characters > limits.characters:
        yield f"RDATA character limit of {limits.characters} exceeded."


def _unknown_health_check(changes: Sequence[Change], limits: Limits) -> str:
    used = (change.record_set.health_check_id for change in changes if change.action != "DELETE")
    known = limits.health_checks
    return next((each for each in used if each and known is not None and each not in known), "")


def _changed_twice(changes: Sequence[Change]) -> Iterator[str]:
    """API: a set cannot be deleted twice in a batch; only DELETE followed by CREATE is allowed."""
    actions: dict[SetKey, list[str]] = defaultdict(list)
    for change in changes:
        actions[change.record_set.key].append(change.action)
    for key, taken in actions.items():
        if tuple(taken) not in _ONE_CHANGE + _REPLACEMENT:
            yield f"The request contains an invalid set of changes for a resource record set '{key.type} {key.name}'"


def _problem_of_content(change: Change, zone_name: str, limits: Limits) -> str | None:
    """The rules for one change that do not depend on the zone's sets."""
    wanted = change.record_set
    try:
        listing_form(change.typed_name)
        if wanted.alias is not None:
            listing_form(wanted.alias.name)
    except NameRefusedError as error:
        return str(error)
    if not lies_in(wanted.key.name, zone_name):
        return f"RRSet with DNS name {wanted.key.name} is not permitted in zone {zone_name}"
    if wanted.key.type == "SOA" and wanted.key.name != zone_name:
        # API, Type: only the zone itself has an SOA set.
        return f"RRSet of type SOA with DNS name {wanted.key.name} is not permitted in zone {zone_name}"
    # Quotas: values of a set.
    if len(wanted.values) > limits.values_of_set:
        return f"Cannot have more than {limits.values_of_set} records in a RRSet."
    seen: set[str] = set()
    for value in wanted.values:
        try:
            form = same_form(wanted.key.type, value)
        except ValueRefusedError as error:
            return f"Invalid Resource Record: '{error}'"
        if form in seen:
            return f"Duplicate Resource Record: '{value}'"
        seen.add(form)
    if wanted.key.type in ("CNAME", "SOA") and len(wanted.values) > 1:
        return (
            f"RRSet of type {wanted.key.type} with DNS name {wanted.key.name} must contain exactly one resource record"
        )
    return None


class _Work:
    """The zone while a batch is being judged: unchanged names are read from the zone, changed ones are copied."""

    def __init__(self, sets: Sets, zone_id: str, zone_name: str, limits: Limits, *, private: bool) -> None:
        self._limits = limits
        self._private = private
        self._sets = sets
        self._zone_id = zone_id
        self._zone_name = zone_name
        self.touched: dict[str, dict[tuple[str, str], StoredSet]] = {}

    def at(self, name: str) -> SetsAtName:
        return self.touched.get(name, self._sets.get(name, {}))

    def apply(self, change: Change) -> None:
        key = change.record_set.key
        here = self.touched.setdefault(key.name, dict(self.at(key.name)))
        if change.action == "DELETE":
            del here[key.type, key.identifier]
        else:
            here[key.type, key.identifier] = change.record_set

    def problem(self, change: Change) -> str | None:
        """The first reason why the change does not fit the zone as it is now, earlier changes included."""
        key = change.record_set.key
        current = self.at(key.name).get((key.type, key.identifier))
        # API, Action: DELETE needs all the values that the current set has.
        if change.action == "DELETE":
            if current is None:
                return f"Tried to delete resource record set {_label(key)} but it was not found"
            if not _same(current, change.record_set):
                return (
                    f"Tried to delete resource record set {_label(key)} "
                    "but the values provided do not match the current values"
                )
            return None
        if change.action == "CREATE" and current is not None:
            return f"Tried to create resource record set {_label(key)} but it already exists"
        wanted = change.record_set
        return (
            problem_of_set(wanted, self._private, self._limits)
            or self._problem_with_neighbours(wanted)
            or self._problem_of_alias(wanted)
        )

    def _problem_with_neighbours(self, wanted: StoredSet) -> str | None:
        """A CNAME must be alone at its name, never at the apex; simple and other sets of one type exclude each other.

        https://docs.aws.amazon.com/Route53/latest/DeveloperGuide/ResourceRecordTypes.html#CNAMEFormat
        """
        key = wanted.key
        others = [other for other in self.at(key.name) if other != (key.type, key.identifier)]
        if key.type == "CNAME":
            if key.name == self._zone_name:
                return (
                    f"RRSet of type CNAME with DNS name {key.name} is not permitted at apex in zone {self._zone_name}"
                )
            if any(record_type != "CNAME" for record_type, _ in others):
                return (
                    f"RRSet of type CNAME with DNS name {key.name} is not permitted as it conflicts with other records "
                    f"with the same DNS name in zone {self._zone_name}"
                )
        elif any(record_type == "CNAME" for record_type, _ in others):
            return (
                f"RRSet of type {key.type} with DNS name {key.name} is not permitted because a conflicting RRSet of "
                f"type CNAME with the same DNS name already exists in zone {self._zone_name}"
            )
        identifiers = [identifier for record_type, identifier in others if record_type == key.type]
        if key.identifier and "" in identifiers:
            return (
                f"RRSet with DNS name {key.name}, type {key.type}, SetIdentifier {key.identifier} cannot be created "
                "as a non-weighted set exists with the same name and type."
            )
        if not key.identifier and identifiers:
            return (
                f"RRSet with DNS name {key.name}, type {key.type}, cannot be created as other RRSets exist with the "
                "same name and type."
            )
        beside = (found for other, found in self.at(key.name).items() if other in others and other[0] == key.type)
        return problems_beside(wanted, beside, self._limits)

    def _problem_of_alias(self, wanted: StoredSet) -> str | None:
        """An alias to a set of the same zone needs that set, of the same type (API, AliasTarget).

        Targets in zones of other accounts (such as load balancers) cannot be checked here.
        """
        alias = wanted.alias
        if alias is None or alias.zone_id != self._zone_id:
            return None
        if any(record_type == wanted.key.type for record_type, _ in self.at(alias.name)):
            return None
        return (
            f"Tried to create an alias that targets {alias.name}, type {wanted.key.type} in zone {alias.zone_id}, "
            "but that target was not found"
        )

    def problems_at_the_end(self, limits: Limits) -> Iterator[str]:
        """Rules on the outcome: the zone's own NS and SOA stay; and the zone has not too many sets."""
        apex = {record_type for record_type, _ in self.at(self._zone_name)}
        # https://docs.aws.amazon.com/Route53/latest/DeveloperGuide/SOA-NSrecords.html
        if "NS" not in apex:
            yield "A HostedZone must contain at least one NS record for the zone itself."
        if "SOA" not in apex:
            yield "A HostedZone must contain exactly one SOA record."
        growth = sum(len(here) - len(self._sets.get(name, {})) for name, here in self.touched.items())
        if growth > 0 and growth + sum(map(len, self._sets.values())) > limits.sets_of_zone:
            yield f"Exceeded limit MAX_RRSETS_BY_ZONE for zone: {self._zone_id}"


def _label(key: SetKey) -> str:
    identifier = f", set-identifier='{key.identifier}'" if key.identifier else ""
    return f"[name='{key.name}', type='{key.type}'{identifier}]"


def _same(a: StoredSet, b: StoredSet) -> bool:
    """Values compare as record data in any order, everything else exactly."""
    return (a.ttl, a.alias, sorted(_forms(a)), a.health_check_id, frozenset(a.routing)) == (
        b.ttl,
        b.alias,
        sorted(_forms(b)),
        b.health_check_id,
        frozenset(b.routing),
    )


def _forms(record_set: StoredSet) -> list[str]:
    return [same_form(record_set.key.type, value) for value in record_set.values]
