"""Objects that are not as the API promises, among good ones: the good ones pass in the same window, the bad one is reported (I4)."""

import copy
from dataclasses import dataclass, replace
from typing import Any, Final

from harness.seen.raw_objects import a_port, put_raw, raw_endpoints, raw_service
from harness.stack import RunningSession, Stack, a_stack
from kubesync.domain.errors import ErrorCode

_HOSTNAME: Final = "external-dns.kubernetes.io/hostname"
UNREADABLE: Final = "Unreadable"
SKIPPED: Final = ""  # its name cannot be part of a key: nothing can be reported on it
FINE: Final = "-"  # odd, but it can be published


@dataclass(frozen=True)
class Bad:
    """A bad object, and the code of what is reported on its key. ``encoded``: its bytes, where JSON has other ways to write it."""

    item: dict[str, Any]
    reported: str = UNREADABLE
    resource: str = "services"
    encoded: bytes = b""
    key: str = "shop/bad"


def _service(reported: str = UNREADABLE, name: str = "bad", **changes: Any) -> Bad:
    return Bad(raw_service(name, **changes), reported, key=f"shop/{name}")


def _annotated(reported: str, **annotations: str) -> Bad:
    full = {f"external-dns.kubernetes.io/{name}": value for name, value in annotations.items()}
    return _service(reported, metadata={"annotations": full})


def _written(spec: str, *, metadata_last: bool = False) -> Bad:
    metadata = '"metadata":{"name":"bad","namespace":"shop","uid":"uid-shop-bad","resourceVersion":"VERSION"}'
    parts = [metadata, f'"spec":{{"x":{spec},"clusterIPs":["10.68.9.9"]}}']
    text = "{" + ",".join(reversed(parts) if metadata_last else parts) + "}"
    return Bad(raw_service("bad"), encoded=text.encode("latin-1"))


def _nested(depth: int) -> str:
    return "[" * depth + "]" * depth


def _endpoints(reported: str, subsets: object, **metadata: Any) -> Bad:
    return Bad(raw_endpoints("bad", subsets=subsets, **metadata), reported, "endpoints")


_OTHER_NAMES: Final = 6
BAD: Final[dict[str, Bad]] = {
    "ports are a string": _service(spec={"ports": "eighty"}),
    "a port is no number": _service(spec={"ports": [a_port(port="80")]}),
    "a port is out of range": _service(spec={"ports": [a_port(port=65_536)]}),
    "a port of 4,000 digits": _service(spec={"ports": [a_port(port=10**3999)]}),
    "spec is a list": _service(spec=[1]),
    "no spec": Bad({key: value for key, value in raw_service("bad").items() if key != "spec"}),
    "labels are a number": _service(metadata={"labels": 5}),
    "status is a string": _service(status="fine"),
    "U+2028 and NUL in annotations": _annotated("InvalidName", hostname="a\u2028b.example.com,\u0000.example.com"),
    "a lone surrogate": _annotated(UNREADABLE, hostname="\ud800.example.com"),
    "a lone surrogate, metadata last": _written(r'"\ud800"', metadata_last=True),
    "bytes that are no UTF-8": Bad(raw_service("bad"), FINE, encoded=_written('"\xff"').encoded),
    "nested 500 deep": _written(_nested(500)),
    "nested 100,000 deep": _written(_nested(100_000)),
    "nested 100,000 deep, metadata last": _written(_nested(100_000), metadata_last=True),
    "a name of 3,000 characters": _service(SKIPPED, "n" * 3000),
    "a name with the separators of keys": _service(SKIPPED, "b/../a#d"),
    "a name with NUL": _service(SKIPPED, "n\u0000l"),
    "a name that is a lone surrogate": _service(SKIPPED, "\ud800"),
    "a name that is not ASCII": _service(SKIPPED, "b\u00e4d"),
    "a name that is no DNS name": _service("InvalidName", "not a name"),
    "a uid of 3,000 characters": Bad(raw_service("bad", uid="u" * 3000), FINE),
    "a protocol of 3,000 characters": _service(spec={"ports": [a_port(protocol="T" * 3000)]}),
    "a creation time of 3,000 characters": _service(
        metadata={"creationTimestamp": "x" * 3000, "annotations": {_HOSTNAME: "good-0.shop.svc.prod.example.com"}}
    ),
    "a port's name that is no label": _service("InvalidName", spec={"ports": [a_port(name="a b")]}),
    "an external name with illegal characters": _service(
        "InvalidExternalName", spec={"type": "ExternalName", "externalName": "a b;c\u0000.example"}
    ),
    "an external name that is an address": _service(
        "ExternalNameIsAddress", spec={"type": "ExternalName", "externalName": "10.0.0.1"}
    ),
    "an external name of 3,000 characters": _service(spec={"type": "ExternalName", "externalName": "a." * 1500}),
    "cluster IPs that are none": _service("InvalidClusterIp", spec={"clusterIPs": ["10.0.0.300", "fe80::1%eth0"]}),
    "10,000 cluster IPs": _service(spec={"clusterIPs": [f"10.0.{n // 250}.{n % 250}" for n in range(10_000)]}),
    "20,000 ports": _service(spec={"ports": [a_port(f"p{n}", n + 1) for n in range(20_000)]}),
    "a TTL that is none": _annotated("InvalidTtl", ttl="soon"),
    "a TTL of 4,000 digits": _annotated("InvalidTtl", ttl="9" * 4000),
    "a host name outside of every zone": _annotated("NoZone", hostname="www.example.org"),
    "a host name of an annotation's greatest length": _annotated("InvalidName", hostname="a" * 262_144),
    "an annotation over every limit": _annotated(UNREADABLE, hostname="a" * 262_145),
    "wildcards in the wrong place": _annotated("InvalidName", hostname="x.*.example.com,*"),
    "subsets are a number": _endpoints(UNREADABLE, 5),
    "an endpoint's node of 500,000 characters": _endpoints(
        UNREADABLE, [{"addresses": [{"ip": "10.42.0.1", "nodeName": "n" * 500_000}], "ports": [{"port": 80}]}]
    ),
    "an endpoint's address that is none": _endpoints(
        "InvalidAddress", [{"addresses": [{"ip": "10.42.0.1.2"}], "ports": [{"name": "http", "port": 80}]}]
    ),
    "1,000 addresses, truncated": _endpoints(
        "EndpointsTruncated",
        [
            {
                "addresses": [{"ip": f"10.42.{n // 250}.{n % 250}"} for n in range(1000)],
                "ports": [{"name": "http", "port": 8080}],
            }
        ],
        annotations={"endpoints.kubernetes.io/over-capacity": "truncated"},
    ),
}


def good_record(number: int) -> str:
    return f"good-{number}.shop.svc.prod.example.com A"


def play_watched(bad: Bad) -> None:
    """It arrives by watch, a good one right after it; later somebody mends it."""
    with a_stack() as stack:
        stack.add_cluster(endpoints_source="endpoints")
        put_raw(stack.api, raw_service("good-0"))
        running = stack.start()
        running.wait_for(lambda: good_record(0) in stack.records())
        _put(stack, bad)
        put_raw(stack.api, raw_service("good-1"))
        # Not by way of a listener's backoff, a second list or a repeated transaction: `_survived` looks.
        running.wait_for(lambda: good_record(1) in stack.records())
        _reported(stack, running, bad)
        _mended(stack, running, bad)
        _survived(running)


def play_listed(bad: Bad) -> None:
    """It is there before the first session."""
    with a_stack() as stack:
        stack.add_cluster(endpoints_source="endpoints")
        _put(stack, bad)
        put_raw(stack.api, raw_service("good-1"))
        running = stack.start()
        running.wait_for(lambda: good_record(1) in stack.records())
        _reported(stack, running, bad)
        _mended(stack, running, bad)
        _survived(running)


def play_together(*, watched: bool) -> None:
    """All of them in one window, each with a key of its own, a good one after the last; later somebody mends them."""
    every = [_numbered(bad, number) for number, bad in enumerate(BAD.values())]
    with a_stack() as stack:
        stack.add_cluster(endpoints_source="endpoints")
        if watched:
            running = stack.start()
            running.wait_for(stack.at_rest)
        for bad in every:
            _put(stack, bad)
        put_raw(stack.api, raw_service("good-1"))
        if not watched:
            running = stack.start()
        running.wait_for(lambda: good_record(1) in stack.records())
        wanted = {bad.key: bad.reported for bad in every if bad.reported not in (SKIPPED, FINE)}
        running.wait_for(lambda: _unreported(stack, wanted) == set())
        assert not {bad.key for bad in every if bad.reported == SKIPPED} & stack.problems().keys()
        ours = [bad for bad in every if bad.key.startswith("shop/bad")]
        assert len(ours) == len(every) - _OTHER_NAMES
        for bad in ours:
            _mend(stack, bad)
        running.wait_for(lambda: {_record(bad) for bad in ours} <= stack.records().keys())
        running.wait_for(lambda: not {bad.key for bad in ours} & stack.problems().keys())
        _survived(running)


def _numbered(bad: Bad, number: int) -> Bad:
    """The same with another name, unless the name is what is bad about it."""
    item = copy.deepcopy(bad.item)
    if item["metadata"]["name"] != "bad":
        return bad
    item["metadata"]["name"] = f"bad{number}"
    if item["metadata"]["uid"].startswith("uid-"):
        item["metadata"]["uid"] += str(number)
    encoded = bad.encoded.replace(b'"name":"bad"', b'"name":"bad%d"' % number).replace(b"-bad", b"-bad%d" % number)
    return replace(bad, item=item, encoded=encoded, key=f"shop/bad{number}")


def _unreported(stack: Stack, wanted: dict[str, str]) -> set[str]:
    found = stack.problems()
    return {key for key, code in wanted.items() if code not in found.get(key, ())}


def _put(stack: Stack, bad: Bad) -> None:
    if bad.resource != "services":
        put_raw(stack.api, raw_service(bad.item["metadata"]["name"]))
    put_raw(stack.api, copy.deepcopy(bad.item), bad.resource, encoded=bad.encoded)


def _reported(stack: Stack, running: RunningSession, bad: Bad) -> None:
    if bad.reported == SKIPPED:
        assert bad.key not in stack.problems()
    elif bad.reported != FINE:
        running.wait_for(lambda: bad.reported in stack.problems().get(bad.key, ()))


def _mended(stack: Stack, running: RunningSession, bad: Bad) -> None:
    """It heals by itself."""
    if bad.reported == SKIPPED or not bad.item["metadata"]["name"].isalnum():
        bad = _service()
    _mend(stack, bad)
    running.wait_for(lambda: _record(bad) in stack.records())
    running.wait_for(lambda: bad.key not in stack.problems())


def _mend(stack: Stack, bad: Bad) -> None:
    name = bad.item["metadata"]["name"]
    mended = raw_service(name) if bad.resource == "services" else raw_endpoints(name, subsets=[])
    put_raw(stack.api, mended, bad.resource, "MODIFIED")


def _record(bad: Bad) -> str:
    return f"{bad.item['metadata']['name']}.shop.svc.prod.example.com A"


def _survived(running: RunningSession) -> None:
    """No listener failed or listed again, no worker ended."""
    report = running.end(ErrorCode.WORKER_EXITING)
    assert report.clean, report
    assert [cluster.problem for cluster in report.clusters] == [""]
    assert [(listener.errors, listener.lists) for listener in report.listeners] == [({}, 1), ({}, 1)]
