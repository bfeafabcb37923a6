"""Names that Services and clusters share deliberately (weighted sets), wildcards, aliases, and zones side by side."""

from typing import Any, Final

from harness.stack import TOKEN, Stack, a_stack
from kubesync.aws.tables.control.resync_requests import ResyncRequest
from kubesync_local.standins.apiserver import ApiServer

PREFIX: Final = "external-dns.kubernetes.io/"


def asking(**wanted: str | None) -> dict[str, Any]:
    return {PREFIX + name.replace("_", "-"): text for name, text in wanted.items()}


def expose(api: ApiServer, name: str, address: str, **wanted: str) -> None:
    """A ClusterIP service with a known address and annotations of external-dns."""
    body = {"ports": [{"port": 80}], "clusterIP": address, "ipFamilies": ["IPv4"]}
    api.cluster.expose("default", name, body, annotations=asking(**wanted))


def annotate(api: ApiServer, name: str, **wanted: str | None) -> None:
    api.cluster.change_service("default", name, {"metadata": {"annotations": asking(**wanted)}})


def www(stack: Stack) -> dict[str, dict[str, Any]]:
    """What stands at www.example.com."""
    return {key: found for key, found in stack.records().items() if key.startswith("www.example.com ")}


def weighted(address: str, weight: int) -> dict[str, Any]:
    return {"ttl": 60, "values": [address], "weight": weight}


def test_two_clusters_share_a_name_by_their_set_identifiers() -> None:
    with a_stack() as stack, ApiServer(tokens={TOKEN: "admin"}) as other:
        stack.add_cluster("prod")
        stack.add_cluster("dr", server=other.url)
        expose(stack.api, "web", "10.68.0.10", hostname="www.example.com", set_identifier="prod", aws_weight="90")
        expose(other, "web", "10.68.0.99", hostname="www.example.com", set_identifier="dr", aws_weight="10")
        running = stack.start()
        running.wait_for(lambda: len(www(stack)) == 2)
        assert www(stack) == {
            "www.example.com A [dr]": weighted("10.68.0.99", 10),
            "www.example.com A [prod]": weighted("10.68.0.10", 90),
        }
        assert (stack.problems("prod"), stack.problems("dr")) == ({}, {})
        annotate(other, "web", aws_weight="255")
        running.wait_for(lambda: www(stack)["www.example.com A [dr]"] == weighted("10.68.0.99", 255))
        stack.api.cluster.delete_service("default", "web")
        running.wait_for(lambda: www(stack) == {"www.example.com A [dr]": weighted("10.68.0.99", 255)})
        assert running.end().clean


def test_weighted_set_that_was_changed_by_hand_is_mended_and_those_of_others_are_left_alone() -> None:
    with a_stack() as stack:
        stack.add_cluster()
        expose(stack.api, "web", "10.68.0.10", hostname="www.example.com", set_identifier="blue", aws_weight="10")
        running = stack.start()
        running.wait_for(lambda: "www.example.com A [blue]" in stack.records())
        assert running.end().clean
        change = {"Name": "www.example.com", "Type": "A", "TTL": 60, "ResourceRecords": [{"Value": "10.68.0.10"}]}
        foreign = {**change, "SetIdentifier": "theirs", "Weight": 7, "ResourceRecords": [{"Value": "192.0.2.1"}]}
        stack.change_by_hand({"Action": "CREATE", "ResourceRecordSet": foreign})
        mine = {**change, "SetIdentifier": "blue"}
        stack.change_by_hand({"Action": "DELETE", "ResourceRecordSet": {**mine, "Weight": 10}})
        stack.change_by_hand({"Action": "CREATE", "ResourceRecordSet": {**mine, "Weight": 99}})
        request = ResyncRequest("2026-11-28T00:00:00.000Z#test", "", dry_run=False, force=False, at_ms=0)
        report = stack.resync(request)["clusters"][0]
        assert [(each["drift"], each["name"], each["identifier"]) for each in report["drift"]] == [
            ("changed", "www.example.com", "blue")
        ]
        assert www(stack) == {
            "www.example.com A [blue]": weighted("10.68.0.10", 10),
            "www.example.com A [theirs]": weighted("192.0.2.1", 7),
        }
