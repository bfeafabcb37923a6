"""Services of one cluster that change all the time, and what they lead to once the changes have ended.

The last deletions come while a session watches. A list that lacks as many would be held back (I5), and each release lists anew after the other.
"""

import random
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final

from harness.seen.raw_objects import put_raw, raw_service
from kubesync_local.standins.apiserver import ApiServer

SEED: Final = 17
COUNT: Final = 12
_PAUSE_SECONDS: Final = 0.05
_HOSTNAME: Final = "external-dns.alpha.kubernetes.io/hostname"

FINAL: Final = [
    *(f"s{number:02d}.shop.svc.prod.example.com A 30 10.68.1.{number + 1}" for number in range(0, COUNT, 3)),
    *(f"s{number:02d}.shop.svc.prod.example.com CNAME 30 s{number:02d}.example.net." for number in range(1, COUNT, 3)),
    "moving.example.com A 30 10.68.1.7",
]
"""Record sets in the end: every third Service has an address, every third is an external name, every third is deleted."""

SETTLED: Final = sorted(
    [*FINAL, *(f"s{number:02d}.shop.svc.prod.example.com A 30 10.68.1.{number + 1}" for number in range(2, COUNT, 3))]
)
"""Record sets before those are deleted."""

FINAL_UPSTREAMS: Final = {
    f"prod/shop/s{number:02d}/80/TCP": [(f"10.42.1.{number + 1}", 8080)] for number in range(0, COUNT, 3)
}
"""Nodes of the upstreams in the end, by their keys."""


class Churn:
    """Changes Services from a thread of its own."""

    def __init__(self, api: ApiServer) -> None:
        self._api = api
        self._chance = random.Random(SEED)
        self._there: set[str] = set()
        self._moving = ""
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._run, name="churn", daemon=True)
        self.changes = 0

    def settle(self) -> None:
        """End the changes with those that lead to ``SETTLED``."""
        self._end()
        self._unname()
        for number in range(COUNT):
            self._set(number, ("address", "external", "address")[number % 3], last=number + 1)
        self._name(6, 7)

    def delete_third(self) -> None:
        """Delete every third Service: what leads to ``FINAL``."""
        for number in range(2, COUNT, 3):
            self._set(number, "gone", last=0)

    def _run(self) -> None:
        while not self._over.wait(_PAUSE_SECONDS):
            number, kind = self._chance.randrange(COUNT), self._chance.choice(("address", "external", "gone", "named"))
            last = self._chance.randrange(100, 250)
            self.changes += 1
            if kind == "named":
                self._unname()
                self._name(number, last)
            else:
                self._set(number, kind, last=last)

    def _name(self, number: int, last: int) -> None:
        self._set(number, "address", last=last, metadata={"annotations": {_HOSTNAME: "moving.example.com"}})
        self._moving = f"s{number:02d}"

    def _unname(self) -> None:
        """Let the name that moves from Service to Service go."""
        if self._moving in self._there:
            self._set(int(self._moving[1:]), "gone", last=0)

    def _set(self, number: int, kind: str, *, last: int, **changes: Any) -> None:
        name = f"s{number:02d}"
        if kind == "gone":
            if name in self._there:
                put_raw(self._api, raw_service(name), change="DELETED")
                put_raw(self._api, _slice(name, last), "endpointslices", "DELETED")
                self._there.discard(name)
            return
        change = "MODIFIED" if name in self._there else "ADDED"
        self._there.add(name)
        put_raw(self._api, _slice(name, last), "endpointslices", change)
        address = f"10.68.1.{last}"
        spec: dict[str, Any] = {
            "clusterIP": address,
            "clusterIPs": [address],
            "ports": [{"name": "http", "protocol": "TCP", "port": 80}],
        }
        if kind == "external":
            spec = {"type": "ExternalName", "externalName": f"{name}.example.net", "clusterIP": "", "clusterIPs": []}
        put_raw(self._api, raw_service(name, spec=spec, **changes), change=change)

    def _end(self) -> None:
        self._over.set()
        self._thread.join()


@contextmanager
def a_churn(api: ApiServer) -> Iterator[Churn]:
    """Changes happen until the block ends."""
    made = Churn(api)
    made._thread.start()
    try:
        yield made
    finally:
        made._end()


def _slice(name: str, last: int) -> dict[str, Any]:
    return {
        "metadata": {
            "name": f"{name}-x",
            "namespace": "shop",
            "uid": f"uid-slice-{name}",
            "resourceVersion": "0",
            "labels": {"kubernetes.io/service-name": name},
        },
        "addressType": "IPv4",
        "endpoints": [{"addresses": [f"10.42.1.{last}"], "conditions": {"ready": True}}],
        "ports": [{"name": "http", "protocol": "TCP", "port": 8080}],
    }
