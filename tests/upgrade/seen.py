"""What stands in the tables and zones, read over the wire with clients that know nothing of kubesync."""

import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

import boto3
from boto3.dynamodb.types import Binary, TypeDeserializer

from harness.cli_stack import CliStack
from harness.dynamodb import dynamodb_url_by_socket

_KEYS: Final = {
    "control": ("pk", "sk"),
    "state": ("pk", "sk"),
    "upstreams": ("upstream", "slice"),
    "audit": ("pk", "sk"),
}
type Items = dict[str, dict[str, Any]]


@dataclass(frozen=True, slots=True)
class Reader:
    """Reads over sockets."""

    stack: CliStack

    def tables(self) -> dict[str, Items]:
        """Every item of each table: ``partition / sort key`` to its attributes. What is deflated is shown inflated."""
        client = boto3.Session("test", "test", region_name="eu-west-1").client(
            "dynamodb", endpoint_url=dynamodb_url_by_socket()
        )
        found: dict[str, Items] = {}
        for table, (partition, sort) in _KEYS.items():
            pages = client.get_paginator("scan").paginate(TableName=f"{self.stack.prefix}-{table}")
            items = [_plain(item) for page in pages for item in page["Items"]]
            found[table] = {f"{item[partition]} / {item[sort]}": item for item in items}
        return found

    def zone(self, zone_id: str) -> list[str]:
        """Record sets in the notation of tests/dns/cases.md, in order; SOA, NS and the journal left out."""
        client = boto3.Session("test", "test", region_name="eu-west-1").client(
            "route53", endpoint_url=self.stack.route53.url
        )
        pages = client.get_paginator("list_resource_record_sets").paginate(HostedZoneId=zone_id)
        return sorted(
            _line(each)
            for page in pages
            for each in page["ResourceRecordSets"]
            if each["Type"] not in ("SOA", "NS") and not each["Name"].startswith("_kubesync-")
        )

    def zones(self) -> list[tuple[str, str]]:
        """The same of every zone: zone id and record set."""
        return sorted((zone.id, line) for zone in self.stack.route53.account.zones() for line in self.zone(zone.id))

    def changes(self, after: int) -> list[str]:
        """What was asked of Route 53 since so many of its calls, in order; changes of journals left out."""
        return [
            f"{'+' if change.action == 'CREATE' else '-' if change.action == 'DELETE' else change.action} "
            f"{change.record_set.key.name.rstrip('.')} {change.record_set.key.type} {change.record_set.ttl} "
            f"{', '.join(change.record_set.values)}"
            for call in self.stack.route53.calls[after:]
            for change in call.changes
            if not change.record_set.key.name.startswith("_kubesync-")
        ]


def differences(before: Mapping[str, Any], after: Mapping[str, Any]) -> list[str]:
    """Each item, and attribute within, that is not the same; empty where all is equal."""
    found = []
    for key in sorted(before.keys() | after.keys()):
        if key not in after:
            found.append(f"{key}: gone: {before[key]}")
        elif key not in before:
            found.append(f"{key}: new: {after[key]}")
        else:
            old, new = before[key], after[key]
            found += [
                f"{key}: {name}: {old.get(name)!r} became {new.get(name)!r}"
                for name in sorted(old.keys() | new.keys())
                if old.get(name) != new.get(name)
            ]
    return found


def _plain(item: Mapping[str, Any]) -> dict[str, Any]:
    read = TypeDeserializer().deserialize
    return {name: _inflated(read(value)) for name, value in item.items()}


def _inflated(value: Any) -> Any:
    if not isinstance(value, Binary):
        return value
    held: bytes = vars(value)["value"]
    try:
        return zlib.decompress(held).decode()
    except zlib.error:
        return held


def _line(found: Mapping[str, Any]) -> str:
    name = found["Name"].rstrip(".").replace("\\052", "*")
    weighted = (
        f" [{found['SetIdentifier']} {found.get('Weight', found.get('Region'))}]" if "SetIdentifier" in found else ""
    )
    if "AliasTarget" in found:
        alias = found["AliasTarget"]
        return f"{name} {found['Type']}{weighted} alias {alias['HostedZoneId']} {alias['DNSName'].rstrip('.')}"
    values = ", ".join(each["Value"] for each in found["ResourceRecords"])
    return f"{name} {found['Type']}{weighted} {found['TTL']} {values}"
