"""A name that is to get another policy, over a roll-back: the release before touches nothing of it, and this one goes on."""

from contextlib import ExitStack
from typing import Any, Final

import pytest

from harness.seen.raw_objects import put_raw, raw_service
from harness.waiting import wait_until
from upgrade.deployment import a_stage, an_api, registration

NAME: Final = "www.example.com"
PREFIX: Final = "external-dns.alpha.kubernetes.io/"


def balancer(cluster: str, address: str, **policy: str) -> dict[str, Any]:
    item = raw_service("web")
    asked = {"hostname": NAME, "set-identifier": cluster, **policy}
    item["metadata"]["annotations"] = {PREFIX + name: value for name, value in asked.items()}
    item["spec"] |= {"type": "LoadBalancer", "ports": []}
    item["status"] = {"loadBalancer": {"ingress": [{"ip": address}]}}
    return item


@pytest.mark.thorough
def test_i1_name_that_turns_over_a_rollback(tmp_path_factory: pytest.TempPathFactory) -> None:
    with ExitStack() as resources:
        stage = resources.enter_context(a_stage(tmp_path_factory.mktemp("release-before")))
        second = an_api(resources)
        apis = {"eu": stage.stack.api, "us": second}

        def of_name() -> list[str]:
            return [line for line in stage.reader.zone(stage.stack.zone_id) if line.startswith(NAME)]

        stage.before.run_all([registration(name, api.url, stage.stack.zone_id) for name, api in apis.items()])
        put_raw(apis["eu"], balancer("eu", "192.0.2.1", **{"aws-weight": "1"}))
        put_raw(apis["us"], balancer("us", "192.0.2.2", **{"aws-weight": "1"}))
        stood = [f"{NAME} A [eu 1] 30 192.0.2.1", f"{NAME} A [us 1] 30 192.0.2.2"]
        stage.session(stage.before, lambda _: of_name() == stood)

        put_raw(apis["eu"], balancer("eu", "192.0.2.1", **{"aws-region": "eu-west-1"}), change="MODIFIED")
        with stage.now.start() as running:
            wait_until(lambda: running.is_master, said=running.said)
            wait_until(lambda: _versions(stage.reader.tables()["state"], "eu") == {6}, said=running.said)
            running.end()
        assert of_name() == stood, "one of two wants it"

        put_raw(apis["us"], balancer("us", "192.0.2.3", **{"aws-weight": "1"}), change="MODIFIED")
        with stage.before.start() as running:
            wait_until(lambda: running.is_master, said=running.said)
            wait_until(
                lambda: any("key#shop/web was written by a newer" in line for line in running.said), said=running.said
            )
            running.end()
        assert of_name() in (stood, [stood[0], f"{NAME} A [us 1] 30 192.0.2.3"]), "neither deleted nor changed alone"

        put_raw(apis["us"], balancer("us", "192.0.2.3", **{"aws-region": "us-east-1"}), change="MODIFIED")
        turned = [f"{NAME} A [eu eu-west-1] 30 192.0.2.1", f"{NAME} A [us us-east-1] 30 192.0.2.3"]
        stage.session(stage.now, lambda _: of_name() == turned)


def _versions(items: dict[str, dict[str, Any]], cluster: str) -> set[int]:
    """The version of the item of a cluster's Service ``web``."""
    return {
        int(item["v"])
        for key, item in items.items()
        if key.startswith(f"{cluster}#") and key.endswith(" / key#shop/web")
    }
