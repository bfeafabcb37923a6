"""What commands say of aliases to names of the same zone, and of policies that are not possible."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest
import yaml

from harness.cli_stack import CliStack, a_bare_environment, a_cli_stack, call

PREFIX: Final = "external-dns.kubernetes.io/"
ALIAS: Final = {"hostname": "example.com,www.example.com", "target": "web.example.com", "alias": "true"}


@pytest.fixture
def stack() -> Iterator[CliStack]:
    with a_cli_stack(in_memory=True) as made:
        made.make_tables()
        made.call(
            "cluster", "add", "prod", "--server", made.api.url, "--domain", "prod.example.com", "--token", "env:KUBESYNC_TEST_TOKEN",
            "--zone", made.zone_id, "--template", "none", "--allow-apex", "--domain-filter", "example.com",
        )  # fmt: skip
        yield made


def expose(stack: CliStack, name: str, asks: dict[str, str]) -> None:
    stack.api.cluster.expose(
        "shop", name, {"ports": [{"port": 80}]}, annotations={PREFIX + key: text for key, text in asks.items()}
    )


def explained(stack: CliStack) -> dict[str, tuple[str, Any]]:
    found = stack.call("explain", "prod/shop/alias", "-o", "json").json
    return {
        f"{each['name']} {each['type']}": (each["state"], each["wanted"] and each["wanted"].get("alias"))
        for each in found["records"]
    }


def test_explain_shows_an_alias_as_the_session_published_it(stack: CliStack) -> None:
    expose(stack, "alias", ALIAS)
    assert stack.session().status == 0
    assert explained(stack) == {"www.example.com CNAME": ("closed", None)}
    text = stack.call("explain", "prod/shop/alias").out
    assert "kubesync publishes no A or AAAA there" in " ".join(text.split())
    expose(stack, "web", {"hostname": "web.example.com"})
    assert stack.session(lambda: "www.example.com A" in stack.zone_records()).status == 0
    assert {name: state for name, (state, _) in explained(stack).items()} == {
        "example.com A": "closed",
        "www.example.com A": "closed",
    }
    assert stack.call("explain", "prod/shop/alias", "-o", "json").json["problems"] == []


def test_explain_says_why_a_policy_is_not_possible(stack: CliStack) -> None:
    expose(stack, "alias", {"hostname": "www.example.com", "aws-failover": "PRIMARY", "set-identifier": "blue"})
    assert stack.session().status == 0
    (www,) = stack.call("explain", "prod/shop/alias", "-o", "json").json["records"]
    assert (www["state"], www["reason"]) == ("withheld", "RoutingNotPossible")
    assert www["next"] == "is not published as it is: a PRIMARY that is no alias needs a health check"


def test_lint_shows_the_cname_that_leads_to_the_same(tmp_path: Path) -> None:
    annotations = {
        PREFIX + "hostname": "www.prod.example.com",
        PREFIX + "target": "web.prod.example.com",
        PREFIX + "alias": "true",
    }
    metadata = {"name": "alias", "namespace": "shop", "annotations": annotations}
    spec = {"clusterIP": "10.0.0.1", "clusterIPs": ["10.0.0.1"], "ports": [{"port": 80}]}
    file = tmp_path / "service.yaml"
    file.write_text(yaml.safe_dump({"apiVersion": "v1", "kind": "Service", "metadata": metadata, "spec": spec}))
    options = ("--domain", "prod.example.com")
    ran = call("lint", "-f", str(file), "-o", "json", *options, environment=a_bare_environment())
    (row,) = ran.json["services"]
    assert {f"{each['name']} {each['type']}": each["values"] for each in row["records"]}[
        "www.prod.example.com CNAME"
    ] == ["web.prod.example.com."]
    assert "alias" not in str(row["records"][0].keys())
