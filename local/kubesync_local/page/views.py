"""What templates show, prepared: rows, pages of lists, counts. Pure."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from kubesync.aws.tables.control.clusters import ClusterConfig, ZoneReference
from kubesync.domain.errors import UsageError
from kubesync.domain.reasons import advice_for
from kubesync_local.commands.show.service_keys import parse_service_key
from kubesync_local.documents.explanation import sharers
from kubesync_local.documents.listener_words import ago, words_of_cluster
from kubesync_local.documents.outlook import zone_code
from kubesync_local.page.changes import Wanted
from kubesync_local.page.facts import ClusterFacts, ServiceRow
from kubesync_local.page.gathering import Overview
from kubesync_local.page.lag import LagPicture, picture
from kubesync_local.recovery.conflict_words import in_the_way_for_people
from kubesync_local.registration.name_rules import rules_in_words
from kubesync_local.terminal.output import counted, side_in_words
from kubesync_local.workplace.readings import ZoneProblem

CLUSTERS_SHOWN: Final = 50
SERVICES_SHOWN: Final = 50
PLAN_SHOWN: Final = 50
_PLAN_ORDER: Final = ("conflict", "held", "open", "kept")
_VALUES_SHOWN: Final = 6
TONES: Final[Mapping[str, str]] = {
    **dict.fromkeys(("closed", "applied", "works", "session"), "good"),
    **dict.fromkeys(("broken", "conflict", "blocked", "drifted", "failing", "full"), "bad"),
    **dict.fromkeys(("decide", "held", "correct", "problem", "withheld", "unreadable", "refused"), "warn"),
}
"""The tone of a word that the page shows as a label. Everything else is neutral; the word always stands there."""


@dataclass(frozen=True, slots=True)
class Page[T]:
    """A part of a list. ``number`` is from 1."""

    rows: Sequence[T]
    number: int
    pages: int
    total: int
    first: int

    @property
    def last(self) -> int:
        """The number of its last row."""
        return self.first + len(self.rows) - 1


def page_of[T](rows: Sequence[T], number: int, size: int) -> Page[T]:
    """A page; a number beyond the list gives the nearest."""
    pages = max(1, -(-len(rows) // size))
    number = min(max(1, number), pages)
    begin = (number - 1) * size
    return Page(rows[begin : begin + size], number, pages, len(rows), begin + 1)


def when(timestamp: object) -> str:
    """A time as tables have it, for people: to the second."""
    text = str(timestamp)
    return f"{text[:10]} {text[11:19]} UTC" if text[10:11] == "T" else text


# --- overview ---


def how_many(count: int, of: int) -> str:
    """How many of a cluster's listeners a text is about, before that text. Nothing before a single one: the row names it."""
    everybody = "both " if of == 2 else "all "
    return "" if count == 1 else everybody if count == of else f"{count} "


def cluster_rows(seen: Overview, facts: Mapping[str, ClusterFacts], now: float) -> list[dict[str, Any]]:
    """A row for each cluster; those that need somebody first."""
    rows = []
    for config in seen.clusters:
        known, listeners = facts.get(config.name), seen.listeners[config.name]
        words = Counter(words_of_cluster(listeners, now, running=seen.serves(config), disabled=config.paused))
        failing = any(row["state"] == "failing" for row in listeners) and not config.paused
        held = sum(known.held.values()) if known else 0
        conflicts = known.states.get("conflict", 0) if known else 0
        rows.append(
            {
                "config": config,
                "listeners": [how_many(count, len(listeners)) + text for text, count in words.items()],
                "names": [row["listener"] for row in listeners],
                "level": "broken" if failing else "decide" if held or conflicts else "",
                "failing": failing,
                "known": known,
                "open": len(seen.marks[config.name]),
                "held": held,
                "conflicts": conflicts,
                "problems": sum(known.problem_counts.values()) if known else None,
            }
        )
    rank = {"broken": 0, "decide": 1, "": 2}
    return sorted(rows, key=lambda row: (rank[row["level"]], row["config"].name))


def totals_of(seen: Overview, facts: Mapping[str, ClusterFacts]) -> dict[str, int]:
    """Sums over all clusters, as far as they were read."""
    return {
        "services": sum(known.service_count for known in facts.values()),
        "record_sets": sum(known.record_sets for known in facts.values()),
        "upstreams": sum(known.upstreams for known in facts.values()),
        "open": sum(map(len, seen.marks.values())),
        "conflicts": sum(known.states.get("conflict", 0) for known in facts.values()),
        "held": sum(sum(known.held.values()) for known in facts.values()),
        "problems": sum(sum(known.problem_counts.values()) for known in facts.values()),
    }


def facts_read(configs: Sequence[ClusterConfig], facts: Mapping[str, ClusterFacts], now: float) -> str:
    """How old the figures of Services are, in words; empty: there is nothing to read."""
    if not configs:
        return ""
    if not facts:
        return "The Services are being read."
    ages = sorted(now - known.read_at for known in facts.values())
    oldest, newest = ago(ages[-1]), ago(ages[0])
    when = newest if newest == oldest else f"between {oldest} and {newest}"
    missing = len(configs) - len(facts)
    rest = f" {counted(missing, 'cluster')} still being read: the figures grow." if missing else ""
    return f"Services were read {when}.{rest}"


def lag_of(seen: Overview, now: float) -> LagPicture | None:
    """The picture of lag."""
    return picture(seen.lag, now)


def only(seen: Overview, config: ClusterConfig) -> Overview:
    """An overview of one cluster and its zones."""
    zones = {zone.id for zone in config.zones}
    return replace(
        seen,
        configs={config.name: config},
        listeners={config.name: seen.listeners[config.name]},
        marks={config.name: seen.marks[config.name]},
        credentials={config.name: seen.credentials.get(config.name, ())},
        zone_problems={zone_id: found for zone_id, found in seen.zone_problems.items() if zone_id in zones},
    )


# --- cluster ---


def configured(config: ClusterConfig) -> list[tuple[str, str]]:
    """The settings that people ask for. References to secrets only, and of a CA only that there is one (I8)."""
    sign_in = [
        (config.token, f"token {config.token}"),
        (config.client_certificate, f"certificate {config.client_certificate}"),
        (config.eks, f"EKS cluster {config.eks}"),
        (config.aws_identity, f"token of AWS STS for {config.aws_identity}"),
        (config.kubeconfig, f"kubeconfig {config.kubeconfig}, {f'context {config.context}' if config.context else 'its current context'}"),
    ]  # fmt: skip
    namespaces = ", ".join(config.namespaces) or "all"
    if config.exclude_namespaces:
        namespaces = f"all but {', '.join(config.exclude_namespaces)}"
    tls = "verified, with a CA of its own" if config.ca_pem or config.ca else "verified"
    rows = [
        ("API server", config.server or "as the kubeconfig says"),
        ("TLS", "NOT VERIFIED" if config.insecure_skip_tls_verify else tls),
        ("Signs in with", "; ".join(text for given, text in sign_in if given) or "nothing"),
        ("Domain", config.domain),
        ("Names of Services", "only from annotations" if config.template == "none" else config.template),
        ("Names from annotations", rules_in_words(config)),
        ("Namespaces", namespaces),
        ("Selector", config.selector),
        ("Services", "only those that opt in" if config.opt_in else ""),
        ("Endpoints from", config.endpoints_source.value),
        ("TTL", f"{config.ttl} s"),
        ("Routing", f"{config.routing}, set identifier {config.name}" if config.routing else ""),
        ("Health check", config.health_check),
        ("SRV records", "" if config.srv else "none"),
        ("Policy", config.policy.value),
        ("When it is removed", f"{config.on_delete.value} record sets and upstreams"),
        ("Shard", config.shard if config.shard != "0" else ""),
        ("Revision", str(config.revision)),
    ]
    return [(name, text) for name, text in rows if text]


def services_shown(facts: ClusterFacts, show: str) -> list[ServiceRow]:
    """The Services of one kind: ``all``, ``attention`` (not closed), or a state."""
    if show == "all":
        return list(facts.services)
    return [row for row in facts.services if (row.state != "closed" if show == "attention" else row.state == show)]


# --- zones ---


def zone_rows(seen: Overview, facts: Mapping[str, ClusterFacts]) -> list[dict[str, Any]]:
    """A row for each zone that a cluster has; those with a problem first."""
    users: dict[str, list[ClusterConfig]] = {}
    for config in seen.clusters:
        for zone in config.zones:
            users.setdefault(zone.id, []).append(config)
    rows = [
        {
            "zone": zone_of(zone_id, configs),
            "clusters": configs,
            "problem": seen.zone_problems.get(zone_id),
            "sets": sum(facts[c.name].sets_in_zone.get(zone_id, 0) for c in configs if c.name in facts),
            "plan": counts_of(plan_of(zone_id, {c.name: facts[c.name] for c in configs if c.name in facts})),
        }
        for zone_id, configs in users.items()
    ]
    return sorted(rows, key=lambda row: (row["problem"] is None, row["zone"].name, row["zone"].id))


def zone_of(zone_id: str, users: Sequence[ClusterConfig]) -> ZoneReference:
    """The zone as registered; one that no cluster has any more has its id as name."""
    found = next((zone for config in users for zone in config.zones if zone.id == zone_id), None)
    return found or ZoneReference.model_construct(id=zone_id, name=zone_id, private=False)


def plan_of(zone_id: str, facts: Mapping[str, ClusterFacts]) -> list[dict[str, Any]]:
    """What is wanted in a zone and not written, held back, in conflict or kept; what a person decides first."""
    rows = [row for known in facts.values() for row in known.pending if row["zone"] == zone_id]
    rank = {word: number for number, word in enumerate(_PLAN_ORDER)}
    return sorted(rows, key=lambda row: (rank.get(row["state"], 9), row["name"].split(".")[::-1], row["type"] or ""))


def planned(plan: Sequence[dict[str, Any]], show: str) -> list[dict[str, Any]]:
    """The rows of one state; ``all``: all of them."""
    return [row for row in plan if show in ("all", row["state"])]


def counts_of(plan: Sequence[Mapping[str, Any]]) -> list[tuple[str, int]]:
    """How many rows of a plan have each state."""
    counts = Counter(row["state"] for row in plan)
    return [(word, counts[word]) for word in _PLAN_ORDER if counts[word]]


def zone_advice(problem: ZoneProblem | None) -> str:
    """What to do about a zone's problem."""
    if problem is None:
        return ""
    code = zone_code(problem.problem)
    return "docs/runbook.md#zoneblocked says what to do." if code == "ZoneBlocked" else advice_for(code)


# --- Service ---


def blocks_of(found: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The record sets and upstreams of ``kubesync explain``: the same words, as rows of a label and a text."""
    blocks = []
    for record in found["records"]:
        of_set = f" [{record['identifier']}]" if "identifier" in record else ""
        place = f"in {record['zone_name'] or 'a zone that the cluster no longer has'}"
        blocks.append(
            {
                **_block(record, list(_of_record(record, found["kind"]))),
                "title": f"{record['name']} {record['type']}{of_set}",
                "place": place,
                "zone": record["zone"],
            }
        )
    for upstream in found["upstreams"]:
        block = _block(upstream, list(_of_upstream(upstream)))
        blocks.append({**block, "title": f"upstream {upstream['upstream']}", "place": "", "zone": None})
    return blocks


def _block(found: Mapping[str, Any], rows: list[tuple[str, str]]) -> dict[str, Any]:
    if found["reason"]:
        rows.append(("reason", found["reason"]))
    rows.append(("next", found["next"] + (f" ({when(found['retry_at'])})" if found["retry_at"] else "")))
    return {"state": found["state"], "rows": rows}


def _of_record(record: Mapping[str, Any], kind: str) -> Iterator[tuple[str, str]]:
    for origin in record["origins"]:
        yield "by", f"{origin['rule']} ← {origin['source']}"
    yield "wanted", _value(record["wanted"], "nothing")
    unread = "cannot be read now" if not record["read"] else "nothing"
    same = record["wanted"] == record["stands"] and record["wanted"] is not None
    yield "current", "the same" if same else _value(record["stands"], unread)
    if record["known"] != record["stands"] and record["read"] and record["known"] is not None:
        yield "written", _value(record["known"], "nothing")
    for other in record["in_the_way"]:
        yield "in the way", f"{other['type']} {_value(other, 'nothing')}"
    claim = record["claim"]
    owner = f"this {kind}" if claim["own"] else claim["owner"] or "none"
    waiting = claim["waiting"]
    more = f" and {len(waiting) - 3} more" if len(waiting) > 3 else ""
    if claim["own"] or claim["owner"] or not claim["others"]:  # else nobody has this set identifier
        yield "owner", owner + (f"; waiting: {', '.join(waiting[:3])}{more}" if waiting else "")
    if claim["others"]:
        yield "shared by", sharers(claim["others"])


def _value(value: Mapping[str, Any] | None, nothing: str) -> str:
    if value is None:
        return nothing
    more = len(value["values"]) - _VALUES_SHOWN
    text = f"alias {value['alias']}" if "alias" in value else ", ".join(value["values"][:_VALUES_SHOWN])
    text += f" and {more} more" if more > 0 else ""
    details = [f"ttl {value['ttl']}"] if value["ttl"] is not None else []
    details += [value["routing"]] if "routing" in value else [f"weight {value['weight']}"] if "weight" in value else []
    details += [] if value.get("evaluate_health", True) else ["health not evaluated"]
    details += [f"with {value['foreign_form']}"] if "foreign_form" in value else []
    return f"{text} ({', '.join(details)})" if details else text


def _of_upstream(upstream: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    if upstream["origin"]:
        yield "by", upstream["origin"]
    for side, nodes in (("wanted", upstream["wanted"]), ("current", upstream["stands"])):
        if nodes is None:
            yield side, "nothing"
            continue
        version = f" (version {nodes['version']}, {when(nodes['updated_at'])})" if "version" in nodes else ""
        yield side, f"{counted(nodes['nodes'], 'node')}, {nodes['ready']} ready{version}"


# --- changes ---


def in_cluster_of(wanted: Wanted) -> Wanted:
    """A Service's changes are in its cluster's part of the audit. An invalid key is refused when the audit is read."""
    try:
        return replace(wanted, cluster=parse_service_key(wanted.service).cluster)
    except UsageError:
        return wanted


def change_line(row: Mapping[str, Any]) -> dict[str, Any]:
    """A change in the words of ``kubesync audit``."""
    kind = row["kind"] or ""
    what = row["what"].removeprefix(f"{kind} ")
    if row["zone"]:
        what = what.removesuffix(f" in {row['zone']}")
    cause = f" {row['object']}@{row['resource_version']}" if row["object"] else ""
    why = [f"{row['why']}{cause}"] if row["why"] else []
    why += [f"batch {row['batch'][:8]}"] if row["batch"] else []
    said = in_the_way_for_people(": ".join(text for text in (row["reason"], row["message"]) if text))
    return {
        "at": row["at"],
        "kind": kind,
        "what": what,
        "service": row["service"],
        "zone": row["zone"],
        "before": side_in_words(row["from"]),
        "after": side_in_words(row["to"]),
        "why": ", ".join(why),
        "said": said,
    }
