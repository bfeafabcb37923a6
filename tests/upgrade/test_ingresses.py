"""``--sources service,ingress`` over releases: added, rolled back, returned to, and taken out; then the release before serves the cluster again.

cluster  zone          reads
prod     example.com   Services and, for a while, Ingresses
plain    example.net   Services
"""

from contextlib import ExitStack
from typing import Final

import pytest

from harness.seen.raw_objects import put_raw, raw_service
from upgrade.deployment import PlainCluster, a_stage, registration
from upgrade.seen import differences

HOST: Final = "www.prod.example.com"
WEB: Final = "web.shop.svc.prod.example.com A 30 10.68.9.9"


@pytest.mark.thorough
@pytest.mark.timeout(600)
def test_i5_ingresses_are_added_rolled_back_returned_to_and_taken_out(
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    with ExitStack() as resources:
        stage = resources.enter_context(a_stage(tmp_path_factory.mktemp("release-before")))
        plain, api, zone = PlainCluster(stage, resources), stage.stack.api, stage.stack.zone_id

        def standing() -> list[str]:
            return [line for line in stage.reader.zone(zone) if "kubernetes" not in line]

        def of_prod() -> dict[str, dict[str, object]]:
            items = stage.reader.tables()["state"]
            return {key: item for key, item in items.items() if "plain" not in key}

        put_raw(api, raw_service("web"))
        stage.before.run_all([registration("prod", api.url, zone, "--no-srv"), plain.registration()])
        stage.session(stage.before, lambda _: standing() == [WEB])

        # The update, and the new source.
        stage.session(stage.now)
        api.cluster.expose_ingress("shop", "web", {"rules": [{"host": HOST}]})
        api.cluster.set_ingress("shop", "web", [{"ip": "192.0.2.1"}])
        stage.now.run("cluster", "set", "prod", "--sources", "service,ingress", "--yes")
        stage.session(stage.now, lambda _: standing() == [WEB, f"{HOST} A 30 192.0.2.1"])

        # The way back: that release leaves the cluster out, says so, and serves the other one.
        before = of_prod()
        api.cluster.set_ingress("shop", "web", [{"ip": "192.0.2.2"}])
        put_raw(api, raw_service("late"))
        running = plain.session(stage.before, "meanwhile")
        assert any("prod" in line and "newer release" in line for line in running.said), running.said
        assert standing() == [WEB, f"{HOST} A 30 192.0.2.1"]
        assert differences(before, of_prod()) == []

        # The return: what came meanwhile is published.
        late = "late.shop.svc.prod.example.com A 30 10.68.9.9"
        stage.session(stage.now, lambda _: standing() == [late, WEB, f"{HOST} A 30 192.0.2.2"])

        # Taken out: the name goes, and both releases serve the cluster again.
        stage.now.run("cluster", "set", "prod", "--sources", "service", "--yes")
        stage.session(stage.now, lambda _: standing() == [late, WEB])
        assert [key for key in of_prod() if "Ingress" in key] == []
        put_raw(api, raw_service("last"))
        last = "last.shop.svc.prod.example.com A 30 10.68.9.9"
        stage.session(stage.before, lambda _: standing() == [last, late, WEB])
