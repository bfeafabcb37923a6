"""``kubesync lint``: what would be published for a manifest, and what is wrong with it."""

import argparse
from collections.abc import Iterable, Mapping
from typing import Any, Final

from pydantic import ValidationError

from kubesync.aws.dynamodb.store import Store
from kubesync.aws.tables.claims import Claim, ClaimTable
from kubesync.aws.tables.control.clusters import ClusterConfig, ZoneReference, explain
from kubesync.aws.tables.state import StateTable
from kubesync.domain.dns.records import RecordKey, RecordSet
from kubesync.domain.errors import UsageError
from kubesync.domain.objects import SERVICE, ObjectKey
from kubesync.domain.plan import published_sets
from kubesync.domain.sources.registry import KINDS
from kubesync.domain.state import Name
from kubesync_local.documents.lint_refusals import LABEL_RULE, is_label
from kubesync_local.documents.lint_report import Given, OwnersOf, Standing, lint_report
from kubesync_local.documents.manifests import Manifest, read_manifests
from kubesync_local.registration.name_rules import ONE_DAY, settled_rules
from kubesync_local.terminal.escaping import spelled, with_spelled_subjects
from kubesync_local.terminal.logs import set_up_logs
from kubesync_local.terminal.output import counted, print_document, print_table, remark, with_policy
from kubesync_local.workplace.workplace import Workplace

_RECORDS: Final = ("name", "type", "identifier", "routing", "ttl", "values", "alias", "zone", "service")
_UPSTREAMS: Final = ("upstream", "nodes")
_NAMED: Final = 3
_PROBLEMS: Final = ("service", "code", "subject", "message", "advice")


def run(arguments: argparse.Namespace) -> int:
    """Show it. Returns 1 if there are problems."""
    set_up_logs()
    if not is_label(arguments.namespace):
        raise UsageError(f"--namespace {arguments.namespace!r} is not a namespace: use {LABEL_RULE}")
    manifests = read_manifests(arguments.files)
    config, owners_of = _rules(arguments)
    given = [Given(each.place, each.resource, each.value) for each in manifests if each.resource is not None]
    report = lint_report(given, arguments.namespace, config, owners_of)
    _remark_on(report, manifests, config)
    if arguments.output != "table":
        print_document(report, arguments.output)
    else:
        _show(report)
    return 0 if report["ok"] else 1


def _rules(arguments: argparse.Namespace) -> tuple[ClusterConfig, OwnersOf]:
    if not arguments.cluster:
        return _default_rules(arguments.domain), lambda _names: {}
    work = Workplace()
    (config,) = work.chosen(arguments.cluster)
    return config, standing(work.store)


def standing(store: Store) -> OwnersOf:
    """Who has names now, by the tables."""
    claims, states = ClaimTable(store), StateTable(store)

    def owners_of(names: Iterable[Name]) -> Mapping[Name, Standing]:
        found = dict[Name, Claim]()
        for place in sorted({Name(name.zone_id, name.name) for name in names}):
            found |= claims.read_all(place)
        holders = sorted({holder for claim in found.values() for holder in claim.holders})
        published = {state.key: published_sets(state) for state in states.load_each(holders)}
        return {name: (claim.owner, _sets_of(claim, published)) for name, claim in found.items()}

    return owners_of


def _sets_of(
    claim: Claim, published: Mapping[ObjectKey, Mapping[RecordKey, RecordSet]]
) -> dict[RecordKey, tuple[RecordSet, ObjectKey]]:
    """The sets of a claim, each with the object that has it."""
    return {
        key: (each, holder)
        for holder in claim.holders
        for key, each in published.get(holder, {}).items()
        if Name.of(key) == claim.name
    }


def _default_rules(domain: str) -> ClusterConfig:
    """As `kubesync cluster add` makes them, with one zone of the domain's name. Raises UsageError."""
    domain = domain.rstrip(".").lower()
    try:
        zone = ZoneReference(id="ZLINT", name=domain, private=True)
        server = "https://lint.invalid"
        sources = tuple(kind.option for kind in KINDS.values() if not kind.shared)
        rules = {**settled_rules({}, None, domain), "max_ttl": ONE_DAY, "sources": sources}
        return ClusterConfig(**{"name": "cluster", "server": server, "domain": domain, "zones": (zone,), **rules})
    except ValidationError as invalid:
        raise UsageError(f"--domain: {explain(invalid).partition(': ')[2] or explain(invalid)}") from None


def _remark_on(report: Mapping[str, Any], manifests: Iterable[Manifest], config: ClusterConfig) -> None:
    others = [str(each.value["kind"]) for each in manifests if each.resource is None]
    if others:
        kinds = ", ".join(spelled(kind) for kind in sorted(set(others)))
        remark(f"{counted(len(others), 'object')} of other kinds, which kubesync does not read: {kinds}")
    if config.selector:
        remark(
            f"note: cluster {config.name} watches only Services with {config.selector}; lint does not compare labels"
        )
    about: dict[str, list[str]] = {}
    for row in report["services"]:
        for note in row["notes"]:
            about.setdefault(note, []).append(row["service"])
    for note, objects in about.items():
        more = f" and {len(objects) - _NAMED} more" if len(objects) > _NAMED else ""
        remark(f"note: {', '.join(objects[:_NAMED])}{more}: {note}")


def _show(report: Mapping[str, Any]) -> None:
    rows = {
        kind: [{"service": row["service"], **each} for row in report["services"] for each in row[kind]]
        for kind in ("records", "upstreams", "problems")
    }
    problems = with_spelled_subjects([*rows["problems"], *report["problems"]])
    tables = [
        ([with_policy(row) for row in rows["records"]], _RECORDS, "record sets", 2),
        (rows["upstreams"], _UPSTREAMS, "upstreams", 1),
        (problems, _PROBLEMS, "problems", 2),
    ]
    for number, (shown, columns, title, names) in enumerate(table for table in tables if table[0]):
        print_table(shown, columns, title, names, first=number == 0)
    only_services = all(row["kind"] == SERVICE for row in report["services"])
    services = counted(len(report["services"]), "Service" if only_services else "object")
    sets = f"{len(rows['records'])} record set{'' if len(rows['records']) == 1 else 's'}"
    remark(f"{services}: {sets}, {counted(len(rows['upstreams']), 'upstream')}, {counted(len(problems), 'problem')}")
