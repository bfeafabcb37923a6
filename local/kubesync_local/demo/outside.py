"""Reads the hosted zone and the upstreams table from outside: over the wire, with plain boto3 clients."""

from decimal import Decimal
from typing import Any

import boto3
from boto3.dynamodb.types import TypeDeserializer

type Records = dict[tuple[str, str], tuple[int, tuple[str, ...]]]
"""Name and type to TTL and values; journal, SOA and NS are left out."""

type Upstreams = dict[str, tuple[str, ...]]
"""Upstream to its nodes: ``address:port``, with a ``!`` in front if not ready. Removed upstreams are left out."""


def read_zone(session: boto3.Session, zone_id: str) -> Records:
    """Every record set of the zone, without its SOA, NS and journal."""
    found: Records = {}
    pages = session.client("route53").get_paginator("list_resource_record_sets").paginate(HostedZoneId=zone_id)
    for page in pages:
        for item in page["ResourceRecordSets"]:
            name = item["Name"].rstrip(".")
            if item["Type"] in ("SOA", "NS") or name.startswith("_kubesync-"):
                continue
            values = tuple(record["Value"] for record in item["ResourceRecords"])
            found[name, item["Type"]] = (item["TTL"], values)
    return found


def read_upstreams(session: boto3.Session, table: str) -> Upstreams:
    """Every upstream, its slices joined as docs/upstreams.md says."""
    as_value = TypeDeserializer().deserialize
    slices: dict[str, dict[int, dict[str, Any]]] = {}
    for page in session.client("dynamodb").get_paginator("scan").paginate(TableName=table, ConsistentRead=True):
        for item in page["Items"]:
            row = {name: as_value(value) for name, value in item.items()}
            slices.setdefault(str(row["upstream"]), {})[int(row["slice"])] = row
    return {
        upstream: tuple(_node(node) for number in sorted(rows) for node in rows[number]["nodes"])
        for upstream, rows in sorted(slices.items())
        if not rows[0].get("deleted")
    }


def _node(node: dict[str, Any]) -> str:
    port: Decimal = node["port"]
    address = f"[{node['ip']}]" if ":" in node["ip"] else node["ip"]
    return f"{'' if node['ready'] else '!'}{address}:{port}"
