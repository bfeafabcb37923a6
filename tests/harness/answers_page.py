"""Makes docs/reference/answers.md: what commands answer as JSON, taken from a run on stand-ins.

What differs between two runs is masked: times, ids of sessions, zones and batches, durations. So two runs lead to the same page.
"""

import json
import re
from collections.abc import Mapping
from typing import Any, Final

from harness.cli_stack import CliStack, a_cli_stack

CLUSTER_IP: Final = {"ports": [{"name": "http", "port": 80}], "selector": {"app": "web"}}
ANSWERS: Final[Mapping[str, tuple[tuple[str, ...], str]]] = {
    "status": (
        ("status",),
        "One object. `clusters` has an entry for each cluster: its listeners, counts, problems and the Services in trouble.",
    ),
    "records": (("records", "--name", "web.*"), "An array: one object for each record set."),
    "upstreams": (("upstreams", "--service", "shop/web"), "An array: one object for each upstream, with its nodes."),
    "explain": (
        ("explain", "prod/shop/docs"),
        "One object: everything about one Service. [Explaining](../explain.md) shows how to read it.",
    ),
    "errors": (("errors",), "An array: the last error of each listener, and how listeners and sessions ended."),
    "audit": (
        ("audit", "--service", "prod/shop/web"),
        "An array: one object for each change. [The audit](../audit.md) explains the words.",
    ),
    "cluster list": (("cluster", "list"), "An array: one object for each registered cluster."),
    "resync": (
        ("resync", "--dry-run"),
        "One object: the report of a full resync, here of a dry run that found a conflict.",
    ),
    "session": (("session",), "One object: the report of a session, printed at its end. Seconds are decimals."),
}
"""Title, command and introduction."""
_TIME: Final = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z")
_MASKED_NUMBERS: Final = frozenset({
    "seconds", "recording_seconds", "p50", "p90", "p99", "max", "checkpoint", "requests", "sent", "count", "batches", "windows", "events",
    "merged", "bookmarks", "generation", "resource_version", "looked_at", "age_seconds", "since_seconds", "minute", "median_seconds",
    "p99_seconds",
})  # fmt: skip
_BY_LISTENER: Final = frozenset({"held", "holding", "errors"})
_MASKED_IDS: Final = frozenset({"session", "by", "batch", "holder", "id", "token"})


def run() -> dict[str, Any]:
    """Each answer of a small deployment, masked."""
    with a_cli_stack(in_memory=True) as stack:
        _prepare(stack)
        session = stack.session().json
        found = {
            title: session if title == "session" else _answer(stack, *command)
            for title, (command, _) in ANSWERS.items()
        }
        return {title: masked(answer, stack.zone_id, stack.api.url) for title, answer in found.items()}


def _prepare(stack: CliStack) -> None:
    """One Service with two pods, and one that wants the name of a foreign record set."""
    stack.api.cluster.deploy("shop", "web", 2)
    stack.api.cluster.expose("shop", "web", CLUSTER_IP)
    stack.api.cluster.expose("shop", "docs", {"type": "ExternalName", "externalName": "docs.example.org"})
    client = stack.boto().client("route53", endpoint_url=stack.environment["AWS_ENDPOINT_URL_ROUTE_53"])
    client.change_resource_record_sets(
        HostedZoneId=stack.zone_id,
        ChangeBatch={"Changes": [{"Action": "CREATE", "ResourceRecordSet": {
            "Name": "docs.shop.svc.prod.example.com", "Type": "A", "TTL": 60, "ResourceRecords": [{"Value": "192.0.2.9"}],
        }}]},
    )  # fmt: skip
    client.close()
    added = stack.add_cluster("prod")
    assert added.status == 0, added.err


def _answer(stack: CliStack, *command: str) -> Any:
    ran = stack.call(*command, "--output", "json")
    assert ran.status == 0, ran.err
    return ran.json


def masked(value: Any, zone_id: str, server: str, name: str = "") -> Any:
    """The same without what differs between two runs."""
    match value:
        case dict():
            # What came first in a run says nothing.
            named = sorted(value.items()) if name in _BY_LISTENER else value.items()
            return {key: masked(each, zone_id, server, key) for key, each in named}
        case list():
            found = [masked(each, zone_id, server, name) for each in value]
            # Entries of one moment come in any order.
            return sorted(found, key=lambda each: json.dumps(each)) if found and isinstance(found[0], dict) else found
        case str():
            text = _TIME.sub("2026-01-31T12:00:00Z", value).replace(zone_id, "Z0123456789ABCDEFGHIJ")
            text = text.replace(server, "https://10.20.30.40:6443")
            text = re.sub(r"(/[a-z0-9-]+)@\d+", r"\1@1234", text)
            text = re.sub(r"\b(web|docs)-[a-z0-9]{5}\b", r"\1-x7k2p", text)
            return "0a1b2c3d4e5f" if name in _MASKED_IDS and re.fullmatch(r"[0-9a-f-]{8,36}", text) else text
        case bool() | None:
            return value
        case float() if name in _MASKED_NUMBERS:
            return 1.0 if value.is_integer() else 1.5
        case int() if name in _MASKED_NUMBERS - {"seconds"}:
            return 1
    return value


def shape(value: Any) -> Any:
    """Names of fields, and the kinds of their values. Entries of an array are taken together."""
    match value:
        case dict():
            return {key: shape(each) for key, each in value.items()}
        case list():
            return ["array", *_together([shape(each) for each in value])]
        case bool() | None | str():
            return type(value).__name__
    return "number"


def _together(shapes: list[Any]) -> list[Any]:
    objects = [each for each in shapes if isinstance(each, dict)]
    others = sorted({str(each) for each in shapes if not isinstance(each, dict)})
    names = list(dict.fromkeys(name for each in objects for name in each))
    joined = {name: _together([each[name] for each in objects if name in each]) for name in names}
    return [*others, *([joined] if objects else [])]


def fewest(value: Any) -> Any:
    """The same without entries of arrays that have no field and no kind of value of their own."""
    match value:
        case dict():
            return {key: fewest(each) for key, each in value.items()}
        case list():
            kept: list[Any] = []
            for each in map(fewest, value):
                if not kept or shape([*kept, each]) != shape(kept):
                    kept.append(each)
            return kept
    return value


def answers_page() -> str:
    """The whole page."""
    parts = []
    for title, answer in run().items():
        command, about = ANSWERS[title]
        typed = " ".join(["kubesync", *command, *([] if title == "session" else ["-o json"])])
        parts.append(
            f"## {title}\n\n{about}\n\n    {typed}\n\n```json\n{json.dumps(fewest(answer), indent=2, ensure_ascii=False)}\n```\n"
        )
    return (
        "# Answers as JSON\n\nWhat commands print with `--output json`. YAML holds the same values. Each answer is from a run on stand-ins. "
        "Times, ids and counts that differ between runs are replaced; of alike entries of an array the first is here. "
        "New fields may come; a field that is there stays.\n\n"
        "<!-- made by make reference -->\n\n" + "\n".join(parts)
    )
