"""``kubesync upstreams``: the upstreams that proxies see."""

import argparse
from typing import Any

from kubesync.aws.tables.upstreams import StoredUpstream, UpstreamTable
from kubesync.domain.upstreams.named import is_named
from kubesync_local.commands.show.chosen_objects import is_chosen
from kubesync_local.commands.show.filters import service_filter
from kubesync_local.documents.kinds import key_of_upstream, kind_of_key
from kubesync_local.terminal.output import print_rows
from kubesync_local.workplace.workplace import Workplace

COLUMNS = ("upstream", "version", "updated_at", "nodes")


def run(arguments: argparse.Namespace) -> int:
    """Show the upstreams table, without removed upstreams."""
    fits = service_filter(arguments.service)
    work = Workplace()
    # The upstreams of a cluster that was removed with --on-delete retain are kept for the proxies.

    def chosen(upstream: str) -> bool:
        cluster = upstream.partition("/")[0]
        return not arguments.cluster or (cluster == arguments.cluster and not is_named(upstream))

    rows = [document(each) for each in UpstreamTable(work.store).read_all(chosen) if not each.deleted]
    if not rows and arguments.cluster:
        work.chosen(arguments.cluster)
    if arguments.output == "table":
        rows = [{**row, "nodes": [_node(node) for node in row["nodes"]] or "none"} for row in rows]
    shown = [row for row in rows if fits(row["upstream"])]
    if arguments.namespace or arguments.selector:
        is_wanted = is_chosen(arguments, work, work.chosen(arguments.cluster) if arguments.selector else ())
        keys = [(row, key_of_upstream(row["upstream"])) for row in shown]
        shown = [row for row, key in keys if key is not None and is_wanted(key)]
    empty = (
        "no upstreams yet: is a session running? See `kubesync status`"
        if not rows
        else "no upstream fits these options"
    )
    print_rows(shown, COLUMNS, arguments.output, empty, sort=arguments.sort)
    return 0


def document(stored: StoredUpstream) -> dict[str, Any]:
    """An upstream as JSON: its fields in the table, all slices joined, and the kind of its object; null: it has a name of its own."""
    return {
        "upstream": stored.upstream,
        "kind": kind_of_key(stored.upstream),
        "version": stored.version,
        "nodes": list(stored.nodes),
        "node_count": len(stored.nodes),
        "slices": stored.slices,
        "digest": stored.digest,
        "updated_at": stored.updated_at,
    }


def _node(node: dict[str, Any]) -> str:
    address = f"[{node['ip']}]" if ":" in node["ip"] else node["ip"]
    weight = f" weight {node['weight']}" if "weight" in node else ""
    backup = " backup" if node.get("backup") else ""
    return f"{address}:{node['port']}{weight}{backup}{'' if node['ready'] else ' (not ready)'}"
