"""Claims by type: no waiter of the release before publishes at the update, and that release gives away no name that is shared by types."""

from contextlib import ExitStack
from typing import Any, Final

import pytest

from harness.seen.raw_objects import put_raw, raw_service
from harness.waiting import wait_until
from upgrade.deployment import a_stage, registration

NAME: Final = "www.prod.example.com"


def balancer(name: str, *addresses: str) -> dict[str, Any]:
    item = raw_service(name)
    item["metadata"]["annotations"] = {"external-dns.alpha.kubernetes.io/hostname": NAME}
    item["spec"]["type"] = "LoadBalancer"
    item["status"] = {"loadBalancer": {"ingress": [{"ip": address} for address in addresses]}}
    return item


@pytest.mark.thorough
def test_i9_shared_name_over_an_update_and_a_rollback(tmp_path_factory: pytest.TempPathFactory) -> None:
    with ExitStack() as resources:
        stage = resources.enter_context(a_stage(tmp_path_factory.mktemp("release-before")))
        api = stage.stack.api

        def of_name() -> list[str]:
            return [line for line in stage.reader.zone(stage.stack.zone_id) if line.startswith(NAME)]

        stage.before.run_all([registration("prod", api.url, stage.stack.zone_id, "--no-srv")])
        put_raw(api, balancer("a", "192.0.2.1"))
        stage.session(stage.before, lambda _: of_name())
        put_raw(api, balancer("b", "192.0.2.2", "2001:db8::2"))
        stage.session(stage.before)
        assert of_name() == [f"{NAME} A 30 192.0.2.1"]

        stage.session(stage.now)  # it lists, for the rules are new
        with stage.now.start() as running:
            wait_until(lambda: running.is_master, said=running.said)
            stage.now.run("resync")
            running.end()
        assert of_name() == [f"{NAME} A 30 192.0.2.1"], "who waited waits"
        put_raw(api, balancer("b", "192.0.2.3", "2001:db8::2"), change="MODIFIED")
        stood = [f"{NAME} A 30 192.0.2.1", f"{NAME} AAAA 30 2001:db8::2"]
        stage.session(stage.now, lambda _: of_name() == stood)

        put_raw(api, balancer("a", "192.0.2.1"), change="DELETED")
        with stage.before.start() as running:
            wait_until(lambda: running.is_master, said=running.said)
            wait_until(lambda: any("upgrade" in line for line in running.said), said=running.said)
            with pytest.raises(AssertionError, match="upgrade"):  # it ends unclean, and says why
                running.end()
        assert of_name() == stood, "neither deleted nor given away"

        stage.session(stage.now, lambda _: of_name() == [f"{NAME} A 30 192.0.2.3", f"{NAME} AAAA 30 2001:db8::2"])
