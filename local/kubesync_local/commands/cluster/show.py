"""``kubesync cluster list`` and ``kubesync cluster show``."""

import argparse
from typing import Any

from kubesync.aws.tables.control.clusters import ClusterConfig
from kubesync.aws.tables.control.zone_access import ZoneAccessTable
from kubesync_local.registration.name_rules import ANY_NAME, LIMITS, how_to_limit, rules_in_words
from kubesync_local.terminal.output import print_document, print_rows, print_table, remark
from kubesync_local.workplace.registry import state_of
from kubesync_local.workplace.workplace import Workplace

COLUMNS = ("name", "server", "domain", "zones", "names", "endpoints_source", "revision", "state")


def run(arguments: argparse.Namespace) -> int:
    """Show one cluster or all."""
    work = Workplace()
    ways = ZoneAccessTable(work.store)
    if arguments.command == "show":
        chosen = work.chosen(arguments.name)[0]
        return _show(document(chosen, ways), arguments.output, rules_in_words(chosen))
    configs = work.clusters.all()
    rows = [document(config, ways) for config in configs]
    if arguments.output == "table":
        rows = [
            {**row, "zones": [f"{z['name']} {z['id']}" for z in row["zones"]], "names": rules_in_words(config)}
            for config, row in zip(configs, rows, strict=True)
        ]
    empty = "no cluster is registered: see `kubesync cluster add --help`"
    print_rows(rows, COLUMNS, arguments.output, empty, sort=arguments.sort)
    for config in configs:
        if not config.domain_filter and not config.deleting:
            remark(f"note: cluster {config.name} accepts {ANY_NAME}; {how_to_limit(config)}")
    return 0


def document(config: ClusterConfig, ways: ZoneAccessTable) -> dict[str, Any]:
    """A configuration as JSON: references to secrets only, and of a CA only that there is one.

    Zones in other accounts have a ``role``. External ids are not shown.
    """
    fields = config.model_dump(mode="json", exclude={"ca_pem", "deleting", "disabled", "external_id"})
    if not config.domain_filter:  # they count only with a domain filter
        fields |= dict.fromkeys(LIMITS)
    for zone in fields["zones"]:
        access = ways.read(zone["id"])
        if access is not None:
            zone["role"] = access.role
    return {
        **fields,
        "own_ca": config.ca_pem is not None or config.ca is not None,
        "state": state_of(config),
    }


def _show(shown: dict[str, Any], output: str, names: str) -> int:
    if output != "table":
        print_document(shown, output)
        return 0
    shown = {**shown, "names_asked_for": names}
    rows = [{"setting": name.replace("_", " "), "value": _value(value)} for name, value in shown.items()]
    print_table([row for row in rows if row["value"] not in (None, "")], ("setting", "value"))
    return 0


def _value(value: object) -> object:
    if isinstance(value, list) and all(isinstance(each, str) for each in value):
        return ", ".join(value)
    if isinstance(value, list):
        return [
            f"{z['name']} {z['id']}{' (private)' if z['private'] else ''}{' by ' + z['role'] if 'role' in z else ''}"
            for z in value
        ]
    return value
