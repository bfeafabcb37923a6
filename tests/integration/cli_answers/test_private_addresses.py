"""``status`` and ``lint`` say that a public zone has private addresses."""

from pathlib import Path

import pytest

from harness.cli_stack import a_cli_stack

MANIFEST = "apiVersion: v1\nkind: Service\nmetadata: {name: new, namespace: shop}\nspec: {ports: [{port: 80}]}\n"


@pytest.mark.parametrize("private", [False, True])
def test_status_and_lint_say_it_of_public_zones_only(private: bool, tmp_path: Path) -> None:
    (tmp_path / "new.yaml").write_text(MANIFEST)
    with a_cli_stack(in_memory=True) as stack:
        zone = stack.route53.create_zone("example.com", private=private)
        assert stack.call(
            "cluster", "add", "prod", "--template", "default", "--server", stack.api.url, "--domain", "prod.example.com",
            "--zone", zone, "--token", "env:KUBESYNC_TEST_TOKEN", "--no-srv",
        ).status == 0  # fmt: skip
        stack.api.cluster.expose("shop", "web", {"ports": [{"port": 80}], "clusterIP": "10.68.0.17"})
        assert stack.session().json["clean"]

        (cluster,) = stack.call("status", "-o", "json").json["clusters"]
        shown = stack.call("status").out
        linted = stack.call("lint", "-f", str(tmp_path / "new.yaml"), "--cluster", "prod")
        by_domain = stack.call("lint", "-f", str(tmp_path / "new.yaml"), "--domain", "prod.example.com")

    said = "2 record sets have private addresses in the public zone example.com, such as "
    assert [(each["zone"], each["record_sets"]) for each in cluster["exposed"]] == ([] if private else [(zone, 2)])
    assert (said in shown) is not private
    note = (
        "note: prod/shop/new: a record set has a private address in the public zone example.com: new.shop.svc.prod.example.com "
        "(its cluster IP); nobody outside can reach it"
    )
    assert (note in linted.lines) is not private
    assert (linted.status, "private address" in by_domain.err) == (0, False)
