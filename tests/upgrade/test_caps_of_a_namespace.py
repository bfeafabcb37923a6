"""A namespace at its caps, over an update and a rollback: what stands goes on, and what waits for room comes once this release is back."""

from contextlib import ExitStack

import pytest

from harness.seen.raw_objects import put_raw, raw_service
from kubesync_local.standins.apiserver.objects.resources import SERVICES, Target
from upgrade.deployment import PlainCluster, a_stage, registration

STAND = ("s0", "s1", "s2", "s3")


def lines(*names: str) -> list[str]:
    return [f"{name}.shop.svc.prod.example.com A 30 10.68.9.9" for name in sorted(names)]


def test_i9_release_before_leaves_what_waits_for_room_and_the_return_publishes_it(
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    with ExitStack() as resources:
        stage = resources.enter_context(a_stage(tmp_path_factory.mktemp("release-before")))
        plain, zone = PlainCluster(stage, resources), stage.stack.zone_id
        for name in STAND:
            put_raw(stage.stack.api, raw_service(name))
        stage.before.run_all([registration("prod", stage.stack.api.url, zone, "--no-srv"), plain.registration()])

        def of_shop() -> list[str]:
            return sorted(line for line in stage.reader.zone(zone) if ".shop." in line)

        def state() -> dict[str, object]:
            return {key: item for key, item in stage.reader.tables()["state"].items() if "plain" not in key}

        stage.session(stage.before, lambda _: of_shop() == lines(*STAND))
        caps = ("--max-record-sets-per-namespace", "3", "--max-waits-per-namespace", "1")
        stage.now.run("cluster", "set", "prod", "--domain-filter", "example.com", *caps, "--yes")
        put_raw(stage.stack.api, raw_service("late"))
        stage.session(stage.now, lambda _: any("over" in place for place in state()))
        assert of_shop() == lines(*STAND), "what stands goes on beyond the cap"

        for name in STAND[:2]:
            stage.stack.api.writer.delete(Target(SERVICES, "shop", name), {})
        before = state()
        plain.session(stage.before, "meanwhile")
        assert (state(), of_shop()) == (before, lines(*STAND))

        stage.session(stage.now, lambda _: of_shop() == lines("late", *STAND[2:]))
        assert not any("over" in place for place in state())
