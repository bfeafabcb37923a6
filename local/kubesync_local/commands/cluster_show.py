"""``kubesync cluster list`` and ``kubesync cluster show``."""

from __future__ import annotations

import argparse
from typing import Any

from kubesync.aws.clusters import ClusterConfig
from kubesync_local.commands.workplace import Workplace
from kubesync_local.output import new_console, print_json, print_rows, table

_COLUMNS = ("name", "server", "domain", "zones", "endpoints_source", "revision", "state")


def run(arguments: argparse.Namespace) -> int:
    """Show one cluster or all."""
    work = Workplace()
    if arguments.command == "show":
        return _show(work.chosen(arguments.name)[0], arguments.output)
    rows = [document(config) for config in work.clusters.all()]
    if arguments.output == "table":
        rows = [{**row, "zones": [f"{zone['name']} {zone['id']}" for zone in row["zones"]]} for row in rows]
    print_rows(rows, _COLUMNS, arguments.output, "no cluster is registered: see `kubesync cluster add --help`")
    return 0


def document(config: ClusterConfig) -> dict[str, Any]:
    """A configuration as JSON. It holds references to secrets only; of the CA, that there is one."""
    fields = config.model_dump(mode="json", exclude={"ca_pem", "deleting"})
    return {
        **fields,
        "own_ca": config.ca_pem is not None,
        "state": "being removed" if config.deleting else "registered",
    }


def _show(config: ClusterConfig, output: str) -> int:
    shown = document(config)
    if output == "json":
        print_json(shown)
        return 0
    rows = [{"setting": name.replace("_", " "), "value": _value(value)} for name, value in shown.items()]
    new_console().print(table([row for row in rows if row["value"] not in (None, "")], ("setting", "value")))
    return 0


def _value(value: object) -> object:
    if isinstance(value, list):
        return [f"{z['name']} {z['id']}{' (private)' if z['private'] else ''}" for z in value]
    return value
