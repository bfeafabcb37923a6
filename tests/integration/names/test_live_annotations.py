"""Annotations that change on a live Service: what stands follows, each change in one batch, nothing is left over."""

from typing import Any, Final

from harness.seen.resync_requests import a_request
from harness.stack import RunningSession, Stack, a_stack

PREFIX: Final = "external-dns.alpha.kubernetes.io/"
LB: Final = "web-0123.elb.eu-west-1.amazonaws.com"


def asking(**wanted: str | None) -> dict[str, str | None]:
    return {PREFIX + name.replace("_", "-"): text for name, text in wanted.items()}


def annotate(stack: Stack, annotations: dict[str, str | None]) -> None:
    stack.api.cluster.change_service("shop", "web", {"metadata": {"annotations": annotations}})


def load_balancer(stack: Stack, name: str, *ingress: dict[str, str], **wanted: str) -> None:
    body = {"type": "LoadBalancer", "ports": [{"port": 80}], "selector": {"app": name}}
    given: Any = asking(**wanted)
    stack.api.cluster.expose("shop", name, body, annotations=given)
    stack.api.cluster.set_load_balancer("shop", name, list(ingress))


def lines(stack: Stack) -> set[str]:
    """What stands of the Services in ``shop``: name, type, weight in brackets, TTL and values or alias."""
    return {
        f"{name}{' ' + str(found['weight']) if 'weight' in found else ''} "
        + (f"alias {found['alias']}" if "alias" in found else f"{found['ttl']} {', '.join(found['values'])}")
        for name, found in stack.records().items()
        if "kubernetes" not in name
    }


def becomes(stack: Stack, running: RunningSession, *wanted: str, batches: int | None = None) -> None:
    """Wait for exactly these lines, made in so many batches since the last call."""
    try:
        running.wait_for(lambda: lines(stack) == set(wanted))
    except AssertionError:
        assert lines(stack) == set(wanted)
    if batches is not None:
        assert len(stack.r53.batches()) == batches


def test_weighted_aliases_share_a_name_and_change_weight_and_type_in_one_batch() -> None:
    with a_stack() as stack:
        stack.add_cluster(template="{service}.{namespace}.{domain}")
        shared = {"alias": "true", "hostname": "www.example.com"}
        load_balancer(stack, "web", {"hostname": LB}, set_identifier="blue", aws_weight="90", **shared)
        load_balancer(stack, "old", {"hostname": LB}, set_identifier="green", **shared)
        running = stack.start()
        old = {f"{n} {kind} [green] 1 alias {LB}" for n in ("old.shop.prod.example.com", "www.example.com")
               for kind in ("A", "AAAA")}  # fmt: skip
        names = ("web.shop.prod.example.com", "www.example.com")
        becomes(stack, running, *old, *(f"{n} {kind} [blue] 90 alias {LB}" for n in names for kind in ("A", "AAAA")))
        before = len(stack.r53.batches())
        annotate(stack, asking(aws_weight="0"))
        becomes(stack, running, *old, *(f"{n} {kind} [blue] 0 alias {LB}" for n in names for kind in ("A", "AAAA")),
                batches=before + 1)  # fmt: skip
        stack.api.cluster.set_load_balancer("shop", "web", [{"ip": "203.0.113.5"}])
        becomes(stack, running, *old, *(f"{n} A [blue] 0 60 203.0.113.5" for n in names), batches=before + 2)
        stack.api.cluster.set_load_balancer("shop", "web", [{"hostname": LB}])
        becomes(stack, running, *old, *(f"{n} {kind} [blue] 0 alias {LB}" for n in names for kind in ("A", "AAAA")),
                batches=before + 3)  # fmt: skip
        assert stack.problems() == {}
        assert running.end().clean


def test_wildcard_takes_any_target_and_is_known_when_the_zone_is_read_back() -> None:
    with a_stack() as stack:
        stack.add_cluster()
        stack.api.cluster.deploy("shop", "web", 1)
        names: Any = asking(hostname="*.Wild.example.com, \\052.apps.example.com", internal_hostname="int.example.com")
        body = {"ports": [{"port": 80}], "clusterIP": "None", "selector": {"app": "web"}}
        stack.api.cluster.expose("shop", "web", body, annotations=names)
        running = stack.start()
        own = "web.shop.svc.prod.example.com"
        becomes(stack, running, "*.wild.example.com A 60 10.42.0.2", f"{own} A 60 10.42.0.2")
        assert stack.problems() == {"shop/web": {"InvalidName", "NoClusterIp"}}
        annotate(stack, asking(target="Edge.Example.net.,"))
        becomes(
            stack,
            running,
            *(f"{name} CNAME 60 edge.example.net." for name in ("*.wild.example.com", own, "int.example.com")),
        )
        before = len(stack.r53.batches())
        annotate(stack, asking(target="2001:DB8::00AB"))
        becomes(stack, running, *(f"{name} AAAA 60 2001:db8::ab" for name in ("*.wild.example.com", own, "int.example.com")),
                batches=before + 1)  # fmt: skip
        assert running.end().clean
        report = stack.resync(a_request(dry_run=True))
        assert [(each["cluster"], each["changes"], each["conflicts"]) for each in report["clusters"]] == [
            ("prod", [], [])
        ]
