"""Deployments whose pods are real servers on this machine: rolling deploys, scale-downs, storms."""

import heapq
import random
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from itertools import count
from multiprocessing.connection import Connection
from typing import Any, Final

from bench.children import Child, answer, child
from harness.pods import PORT, Pods
from kubesync_local.standins.apiserver.workloads.cluster import Cluster
from kubesync_local.standins.apiserver.workloads.endpoints_controller import Pod

_PATIENCE_SECONDS: Final = 180.0


class LoopbackCluster(Cluster):
    """The played cluster; its pods have addresses of 127.0.0.0/8."""

    def _new_pod(self, workload: Any) -> Pod:
        pod = super()._new_pod(workload)
        return replace(pod, ips=tuple(ip.replace("10.", "127.", 1) for ip in pod.ips if ":" not in ip))


class Fleet:
    """One Deployment behind one Service. Not thread-safe, but for what ends pods in the background.

    Args:
        grace_seconds: a pod stops so long after it was marked terminating.
    """

    def __init__(self, cluster: LoopbackCluster, pods: Child, namespace: str, grace_seconds: float) -> None:
        self._cluster = cluster
        self._pods = pods
        self._namespace = namespace
        self._grace_seconds = grace_seconds
        self._ending: list[tuple[float, int, Pod]] = []
        self._order = count()
        self._workload: Any = None

    @property
    def ready(self) -> list[str]:
        """Addresses of the pods that take traffic."""
        return sorted(pod.ips[0] for pod in self._workload.pods if pod.ready and not pod.terminating)

    def deploy(self, replicas: int) -> None:
        """Begin with so many pods."""
        self._cluster.deploy(self._namespace, "web", 0, ports={"http": PORT})
        self._workload = self._cluster._workloads[self._namespace, "web"]
        self._cluster.expose(
            self._namespace, "web",
            {"selector": {"app": "web"}, "ports": [{"name": "http", "port": 80, "targetPort": "http"}]},
        )  # fmt: skip
        self._change(more=replicas)

    def roll(self, at_once: int, pause_seconds: float, known: Callable[[], set[str]]) -> None:
        """Replace every pod, some at once: new ones are ready before old ones terminate.

        A deploy goes at most two steps ahead of the proxies, so it never replaces all pods before a fail-over has ended. So the outcome
        does not depend on how fast this machine is.

        Args:
            known: the pods that take traffic in every proxy.
        """
        old = [pod for pod in self._workload.pods if not pod.terminating]
        before: set[str] = set()
        for start in range(0, len(old), at_once):
            gone = old[start : start + at_once]
            new = self._change(more=len(gone), fewer=gone)
            self.pause(pause_seconds)
            expected = before
            self.pause(_PATIENCE_SECONDS, lambda expected=expected: expected <= known())  # type: ignore[misc]
            assert before <= known(), f"the proxies never learned of {before}"
            before = {pod.ips[0] for pod in new}

    def scale_down(self, fewer: int) -> None:
        """End so many pods."""
        self._change(fewer=[pod for pod in self._workload.pods if not pod.terminating][:fewer])

    def scale_up(self, more: int) -> None:
        """Start so many pods."""
        self._change(more=more)

    def flip(self, share: float, chance: random.Random) -> None:
        """Some pods, drawn by chance, become ready or not ready. They go on answering."""
        for pod in self._workload.pods:
            if chance.random() < share:
                pod.ready = not pod.ready
        self._cluster.reconcile(self._namespace)

    def pause(self, seconds: float, until: Callable[[], object] = lambda: False) -> None:
        """Let time pass; pods whose time has come stop meanwhile."""
        end = time.monotonic() + seconds
        while not until() and time.monotonic() < end:
            if self._ending and self._ending[0][0] <= time.monotonic():
                _, _, pod = heapq.heappop(self._ending)
                self._pods.ask("stop", pod.ips[0])
                self._workload.pods.remove(pod)
                self._cluster.reconcile(self._namespace)
            else:
                threading.Event().wait(0.02)

    def _change(self, more: int = 0, fewer: list[Pod] | None = None) -> list[Pod]:
        new = [self._cluster._new_pod(self._workload) for _ in range(more)]
        self._pods.ask("start", [pod.ips[0] for pod in new])
        self._workload.pods += new
        for pod in fewer or ():
            pod.terminating = True
            heapq.heappush(self._ending, (time.monotonic() + self._grace_seconds, next(self._order), pod))
        self._cluster.reconcile(self._namespace)
        return new


@contextmanager
def pod_process() -> Iterator[Child]:
    """The servers of all pods, in a process of their own: ``start`` (addresses), ``stop`` (address)."""
    with child(_serve) as process:
        process.wait()
        yield process


def _serve(pipe: Connection) -> None:
    # CPython 3.13: a connection that is accepted while its server closes complains when it is collected.
    sys.unraisablehook = lambda _: None
    with Pods() as pods:

        def start(addresses: list[str]) -> None:
            for ip in addresses:
                pods.start(ip)

        pipe.send("ready")
        answer(pipe, {"start": start, "stop": pods.stop})
