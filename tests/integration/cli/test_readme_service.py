"""README shows a Service and what becomes of it: a cluster that holds this Service leads to exactly that."""

from __future__ import annotations

import re
from typing import Any, Final

import yaml

from harness.cli_stack import CliStack, a_cli_stack
from harness.wire.template import ROOT

TITLE: Final = "## One Service, and what becomes of it\n"
RECORDS: Final = [
    ("_http._tcp.web.shop.svc.prod.example.com", "SRV", "30", "0 100 80 web.shop.svc.prod.example.com."),
    ("shop.example.com", "A", "30", "203.0.113.10"),
    ("web.shop.svc.prod.example.com", "A", "30", "203.0.113.10"),
]
UPSTREAM: Final = ("prod/shop/web/80/TCP", ["10.42.0.2:8080", "10.42.0.3:8080"])


def section() -> str:
    return (ROOT / "README.md").read_text().partition(TITLE)[2].partition("\n## ")[0]


def service() -> dict[str, Any]:
    """The manifest, with the status that a cluster gives it."""
    loaded: dict[str, Any] = yaml.safe_load(section().partition("```yaml\n")[2].partition("```")[0])
    return loaded


def published(stack: CliStack) -> list[tuple[str, str, str, str]]:
    """What stands in the zone, read from the stand-in itself."""
    return sorted(
        (key.name.rstrip("."), key.type, str(stored.ttl), ", ".join(stored.values))
        for key, stored in stack.route53.records(stack.zone_id).items()
        if key.type not in ("SOA", "NS") and not key.name.startswith("_kubesync-")
    )


def test_readme_shows_the_record_sets_and_the_upstream_of_its_service() -> None:
    rows = re.findall(r"^\| `(\S+)` \| ([A-Z]+) \| (\d+) \| `([^`]+)` \|", section(), re.MULTILINE)
    key, nodes = UPSTREAM

    assert sorted(rows) == RECORDS
    assert f"`{key}` with the nodes {' and '.join(f'`{node}`' for node in nodes)}" in " ".join(section().split())
    assert "`--domain prod.example.com --domain-filter example.com`" in section()


def test_service_of_readme_is_published_as_readme_shows_it() -> None:
    manifest = service()
    metadata = manifest["metadata"]
    assert (metadata["namespace"], metadata["name"]) == ("shop", "web")
    with a_cli_stack(in_memory=True) as stack:
        # The namespace leaves out what every cluster has: the API server's own Service.
        added = stack.add_cluster("prod", "--domain-filter", "example.com", "--namespace", "shop")
        assert added.status == 0, added.err
        stack.api.cluster.deploy("shop", "web", 2)
        stack.api.cluster.expose("shop", "web", manifest["spec"], annotations=metadata["annotations"])
        stack.api.cluster.set_load_balancer("shop", "web", manifest["status"]["loadBalancer"]["ingress"])
        stack.session()
        shown = stack.call("upstreams", "-o", "json").json

        assert published(stack) == RECORDS
        assert [(each["upstream"], [f"{node['ip']}:{node['port']}" for node in each["nodes"]]) for each in shown] == [
            UPSTREAM
        ]
        assert stack.call("status", "-o", "json").json["clusters"][0]["problems"] == []
