"""A Service with a routing policy that the release before does not know: that release leaves its cluster out, and its records stay."""

from contextlib import ExitStack
from typing import Final

import pytest

from harness.seen.raw_objects import put_raw, raw_service
from harness.waiting import wait_until
from upgrade.deployment import PlainCluster, a_stage, an_api, registration

REGION: Final = {
    "external-dns.alpha.kubernetes.io/set-identifier": "blue",
    "external-dns.alpha.kubernetes.io/aws-region": "eu-west-1",
}


def test_i5_release_before_leaves_policies_alone_and_serves_other_clusters(
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    with ExitStack() as resources:
        stage = resources.enter_context(a_stage(tmp_path_factory.mktemp("release-before")))
        plain, zone = PlainCluster(stage, resources), stage.stack.zone_id
        put_raw(stage.stack.api, raw_service("web"))
        stage.before.run_all([registration("prod", stage.stack.api.url, zone, "--no-srv"), plain.registration()])
        stage.session(stage.before)
        routed = raw_service("web")
        routed["metadata"]["annotations"] = REGION
        put_raw(stage.stack.api, routed, change="MODIFIED")
        stage.session(stage.now, lambda _: any("eu-west-1" in line for line in stage.reader.zone(zone)))
        stood = [line for line in stage.reader.zone(zone) if line.startswith("web.")]
        assert stood == ["web.shop.svc.prod.example.com A [blue eu-west-1] 30 10.68.9.9"]

        plain.put("meanwhile")
        put_raw(stage.stack.api, raw_service("late"))
        with stage.before.start() as running:
            wait_until(lambda: plain.has("meanwhile"), said=running.said)
            with pytest.raises(AssertionError, match="this one knows 1: upgrade"):  # it ends unclean, and says why
                running.end()
        assert [line for line in stage.reader.zone(zone) if line.startswith("web.")] == stood
        assert not any(line.startswith("late.") for line in stage.reader.zone(zone))

        stage.session(stage.now, lambda _: any(line.startswith("late.") for line in stage.reader.zone(zone)))
        assert [line for line in stage.reader.zone(zone) if line.startswith("web.")] == stood


def test_i5_release_before_leaves_a_cluster_with_a_policy_out_and_the_return_plans_what_waits(
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    with ExitStack() as resources:
        stage = resources.enter_context(a_stage(tmp_path_factory.mktemp("release-before")))
        plain, east, zone = PlainCluster(stage, resources), an_api(resources), stage.stack.zone_id
        put_raw(stage.stack.api, raw_service("web"))
        put_raw(east, raw_service("web"))
        stage.before.run_all([registration("prod", stage.stack.api.url, zone, "--no-srv"), plain.registration()])
        stage.session(stage.before)

        def of_web() -> list[str]:
            return [line for line in stage.reader.zone(zone) if line.startswith(("web.", "late."))]

        assert of_web() == ["web.shop.svc.prod.example.com A 30 10.68.9.9"]
        stage.now.run("cluster", "set", "prod", "--routing", "weighted=90", "--yes")
        weighted = ("--no-srv", "--routing", "weighted=10")
        stage.now.run_all([registration("east", east.url, zone, *weighted, domain="prod.example.com")])
        stood = [
            "web.shop.svc.prod.example.com A [east 10] 30 10.68.9.9",
            "web.shop.svc.prod.example.com A [prod 90] 30 10.68.9.9",
        ]
        stage.session(stage.now, lambda _: of_web() == stood)
        before = {key: item for key, item in stage.reader.tables()["state"].items() if "plain" not in key}

        put_raw(stage.stack.api, raw_service("late"))
        plain.session(stage.before, "meanwhile")
        assert of_web() == stood, "neither deleted nor made simple"
        assert {key: item for key, item in stage.reader.tables()["state"].items() if "plain" not in key} == before

        stage.session(stage.now, lambda _: any(line.startswith("late.") for line in of_web()))
        assert of_web() == ["late.shop.svc.prod.example.com A [prod 90] 30 10.68.9.9", *stood]
