"""Each folder of examples/ played: its manifests are applied, and the zone then holds what its records.txt says."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest
import yaml

from harness.cli_stack import ROOT, TOKEN, CliStack, a_cli_stack
from harness.seen.raw_objects import put_raw
from kubesync_local.standins.apiserver import ApiServer

EXAMPLES: Final = ROOT / "examples"
PLAYED: Final = sorted(path.parent.name for path in EXAMPLES.glob("*/records.txt"))
ADDRESS: Final = "203.0.113.10"
UPSTREAM: Final = "prod/shop/web/80/TCP"


@pytest.fixture
def token(tmp_path: Path) -> str:
    (tmp_path / "token").write_text(TOKEN)
    return f"file:{tmp_path / 'token'}"


@pytest.fixture
def stack() -> Iterator[CliStack]:
    with a_cli_stack(in_memory=True) as made:
        yield made


def apply(api: ApiServer, folder: Path) -> None:
    """As kubectl does; then the cloud gives load balancers their address."""
    for path in sorted(folder.glob("*.yaml")):
        for item in yaml.safe_load_all(path.read_text()):
            if "kind" in item:
                put_raw(api, as_stored(item), {"Service": "services", "Ingress": "ingresses"}[item["kind"]])


def as_stored(item: dict[str, Any]) -> dict[str, Any]:
    metadata = item["metadata"] | {"uid": f"uid-{item['metadata']['name']}", "resourceVersion": "0"}
    metadata["creationTimestamp"] = "2026-01-01T00:00:00Z"
    spec = item["spec"]
    if item["kind"] == "Service":
        ports = [{"protocol": "TCP", "targetPort": port["port"], **port} for port in spec["ports"]]
        spec = {"type": "ClusterIP", "clusterIP": "10.68.9.9", "clusterIPs": ["10.68.9.9"], **spec, "ports": ports}
    balanced = item["kind"] == "Ingress" or spec["type"] == "LoadBalancer"
    ingress = {"ingress": [{"ip": ADDRESS}]} if balanced else {}
    return {**item, "metadata": metadata, "spec": spec, "status": {"loadBalancer": ingress}}


def add(stack: CliStack, token: str, *options: str) -> None:
    added = stack.call(
        "cluster", "add", "prod", "--server", stack.api.url, "--domain", "prod.example.com", "--zone", stack.zone_id,
        "--domain-filter", "example.com", "--token", token, *options,
    )  # fmt: skip
    assert added.status == 0, added.err


def records(stack: CliStack) -> list[str]:
    """Every record set of the zone that is not the zone's own, as the pages of examples have them."""
    client = stack.boto().client("route53", endpoint_url=stack.route53.url)
    pages = client.get_paginator("list_resource_record_sets").paginate(HostedZoneId=stack.zone_id)
    return sorted(
        " ".join(
            [
                found["Name"],
                found["Type"],
                str(found["TTL"]),
                *(value["Value"] for value in found["ResourceRecords"]),
                *([f"{found['SetIdentifier']} weight {found['Weight']}"] if "SetIdentifier" in found else []),
            ]
        )
        for page in pages
        for found in page["ResourceRecordSets"]
        if found["Type"] not in ("SOA", "NS", "TXT")
    )


@pytest.mark.parametrize("name", [name for name in PLAYED if name != "two-clusters"])
def test_example_leads_to_its_records(stack: CliStack, token: str, name: str) -> None:
    add(stack, token, "--sources", "service,ingress")
    apply(stack.api, EXAMPLES / name)
    stack.session()

    assert records(stack) == (EXAMPLES / name / "records.txt").read_text().splitlines()


def test_two_clusters_share_their_names(stack: CliStack, token: str, tmp_path: Path) -> None:
    folder = EXAMPLES / "two-clusters"
    document = yaml.safe_load((folder / "clusters.yaml").read_text())
    with ApiServer() as east:
        servers = {"west": stack.api, "east": east}
        for cluster in document["clusters"]:
            cluster |= {"server": servers[cluster["name"]].url, "token": token}
            cluster["zones"] = [stack.zone_id]
            apply(servers[cluster["name"]], folder)
        (tmp_path / "clusters.yaml").write_text(yaml.safe_dump(document))
        applied = stack.call("cluster", "apply", "-f", str(tmp_path / "clusters.yaml"), "--yes")
        assert applied.status == 0, applied.err
        expected = (folder / "records.txt").read_text().splitlines()
        stack.session(lambda: records(stack) == expected)

    assert records(stack) == expected


@pytest.fixture
def over_http() -> Iterator[CliStack]:
    """`render` has clients of its own."""
    with a_cli_stack() as made:
        assert made.call("setup").status == 0
        yield made


def test_proxies_send_to_what_render_writes(over_http: CliStack, token: str, tmp_path: Path) -> None:
    stack = over_http
    stack.api.cluster.deploy("shop", "web", 2)
    stack.api.cluster.expose("shop", "web", {"ports": [{"port": 80}], "selector": {"app": "web"}})
    add(stack, token)
    stack.session()
    written = {
        form: stack.call("render", form, "--upstream", UPSTREAM, *more)
        for form, more in (("nginx", ()), ("haproxy", ()), ("envoy", ("--output-dir", str(tmp_path))))
    }

    assert [(ran.status, ran.err) for ran in written.values()] == [(0, "")] * 3
    for form, file, used, made in (
        ("nginx", "nginx.conf", "proxy_pass http://prod.shop.web.80.TCP;", "upstream prod.shop.web.80.TCP {"),
        ("haproxy", "haproxy.cfg", "default_backend prod.shop.web.80.TCP", "backend prod.shop.web.80.TCP"),
    ):
        assert used in (EXAMPLES / "proxies" / file).read_text()
        assert made in written[form].out
    envoy = yaml.safe_load((EXAMPLES / "proxies/envoy.yaml").read_text())
    assert UPSTREAM in str(envoy["static_resources"])
    assert UPSTREAM in (tmp_path / "clusters.json").read_text()
