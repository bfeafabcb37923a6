"""README shows a Service, an Ingress, and what becomes of them: a cluster that holds them leads to exactly that."""

import re
from typing import Any, Final

import yaml

from harness.cli_stack import CliStack, a_cli_stack
from harness.wire.template import ROOT

TITLE: Final = "## One Service\n"
RECORDS: Final = [
    ("_http._tcp.web.shop.svc.prod.example.com", "SRV", "30", "0 100 80 web.shop.svc.prod.example.com."),
    ("shop.example.com", "A", "30", "203.0.113.10"),
    ("web.shop.svc.prod.example.com", "A", "30", "203.0.113.10"),
]
UPSTREAM: Final = ("prod/shop/web/80/TCP", ["10.42.0.2:8080", "10.42.0.3:8080"])


INGRESS_TITLE: Final = "## One Ingress\n"
INGRESS_RECORDS: Final = [
    ("store.example.com", "CNAME", "30", "k8s-shop-store-1.eu-west-1.elb.amazonaws.com."),
]


def section(title: str = TITLE) -> str:
    return (ROOT / "README.md").read_text().partition(title)[2].partition("\n## ")[0]


def manifest_of(title: str = TITLE) -> dict[str, Any]:
    """With the status that a cluster gives it."""
    loaded: dict[str, Any] = yaml.safe_load(section(title).partition("```yaml\n")[2].partition("```")[0])
    return loaded


def rows_of(title: str = TITLE) -> list[tuple[str, str, str, str]]:
    return sorted(re.findall(r"^\| `(\S+)` \| ([A-Z]+) \| (\d+) \| `([^`]+)` \|", section(title), re.MULTILINE))


def published(stack: CliStack) -> list[tuple[str, str, str, str]]:
    """What stands in the zone, read from the stand-in itself."""
    return sorted(
        (key.name.rstrip("."), key.type, str(stored.ttl), ", ".join(stored.values))
        for key, stored in stack.route53.records(stack.zone_id).items()
        if key.type not in ("SOA", "NS") and not key.name.startswith("_kubesync-")
    )


def test_readme_shows_the_record_sets_and_the_upstream_of_its_service() -> None:
    key, nodes = UPSTREAM

    assert rows_of() == RECORDS
    assert f"`{key}` with the nodes {' and '.join(f'`{node}`' for node in nodes)}" in " ".join(section().split())
    assert "`--domain prod.example.com --domain-filter example.com`" in section()


def test_service_of_readme_is_published_as_readme_shows_it() -> None:
    manifest = manifest_of()
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


def test_ingress_of_readme_is_published_as_readme_shows_it() -> None:
    manifest = manifest_of(INGRESS_TITLE)
    assert rows_of(INGRESS_TITLE) == INGRESS_RECORDS
    assert "`--sources service,ingress`" in section(INGRESS_TITLE)
    with a_cli_stack(in_memory=True) as stack:
        options = ["--domain-filter", "example.com", "--namespace", "shop", "--sources", "service,ingress"]
        assert stack.add_cluster("prod", *options).status == 0
        stack.api.cluster.expose_ingress("shop", manifest["metadata"]["name"], manifest["spec"])
        stack.api.cluster.set_ingress("shop", "store", manifest["status"]["loadBalancer"]["ingress"])
        stack.session()
        assert published(stack) == INGRESS_RECORDS
        assert stack.call("status", "-o", "json").json["clusters"][0]["problems"] == []
