"""`make proxies`: real proxies before real pods, while these are deployed again. No request may fail.

pods      stop 5 s after they are marked terminating
masters   a session is killed now and then; the next one takes over when the lease expires (3 s here, 15 s by default and in the storm)
traffic   requests a second to each of nginx, HAProxy, Envoy and OpenResty
"""

import argparse
import os
import random
import sys
import tempfile
import time
from contextlib import ExitStack
from pathlib import Path
from typing import Final

from harness.real_proxies import PACKAGES
from harness.waiting import wait_until
from kubesync_local.demo.stack import Place, demo_stack
from real_proxies.load.edge import PROXIES, Edge, edge, settled, taking_traffic
from real_proxies.load.fleet import Fleet, LoopbackCluster, pod_process
from real_proxies.load.masters import Masters, masters
from real_proxies.load.traffic import Tally, Traffic, described, traffic

_PATIENCE_SECONDS: Final = 180.0
_LEASE: Final = {
    "KUBESYNC_LEASE_SECONDS": "3",
    "KUBESYNC_LEASE_RENEW_SECONDS": "1",
    "KUBESYNC_LEASE_WRITE_SECONDS": "2",
}


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m real_proxies.load", description=__doc__)
    parser.add_argument(
        "--rate", type=int, default=200, help="requests a second to all proxies together (default: 200)"
    )
    parser.add_argument("--deploys", type=int, default=20)
    parser.add_argument("--scale-downs", type=int, default=5)
    parser.add_argument("--kills", type=int, default=3)
    parser.add_argument("--crowd", type=int, default=1000, help="pods in the storm (default: 1000)")
    parser.add_argument("--proxy", action="append", choices=PROXIES, help="only this one (default: all)")
    arguments = parser.parse_args()
    if not (PACKAGES / "complete").exists():
        print("· real proxies: not on this machine; skipped")
        return 0
    with tempfile.TemporaryDirectory(prefix="kubesync-proxies-") as directory, ExitStack() as stack:
        os.environ["KUBESYNC_DEPLOYMENT"] = "demo"
        demo = stack.enter_context(demo_stack(Place(secret="kubesync/demo")))
        os.environ["AWS_ENDPOINT_URL_SECRETS_MANAGER"] = demo.dynamodb.url
        cluster = LoopbackCluster(demo.api.internal_client())
        fleet = Fleet(cluster, stack.enter_context(pod_process()), "shop", grace_seconds=5.0)
        fleet.deploy(8)
        running = stack.enter_context(masters(Path(directory), _LEASE))
        begun = time.monotonic()
        edges = [stack.enter_context(edge(name, Path(directory) / name)) for name in arguments.proxy or PROXIES]
        print(f"· {len(edges)} proxies serve after {time.monotonic() - begun:.1f} s", flush=True)
        sender = stack.enter_context(traffic({each.name: each.port for each in edges}, arguments.rate // len(edges)))
        for each in edges:
            wait_until(lambda each=each: settled(each, fleet.ready), said=f"{each.name} at the beginning")  # type: ignore[misc]
        sender.start()
        wrong = ""
        try:
            _play(arguments, fleet, edges, running, sender)
        except AssertionError as error:
            wrong = str(error)
        tallies = sender.stop()
        print(described(tallies))
        print("· reloads: " + ", ".join(f"{each.name} {each.reloaded}" for each in edges if each.reloaded))
        failed = sum(len(tally.failed) for tally in tallies.values())
        failing = sum(bool(tally.failed) for tally in tallies.values())
        print(f"{len(tallies) - failing} passed, {failing} failed")
        if failed or wrong:
            print(wrong)
            for log in sorted(Path(directory).glob("sessions-*.log")):
                print(f"-- {log.stem}\n{_tail(log)}")
            for each in edges:
                print(f"-- {each.name}\n{_tail(each.directory / 'render.log')}\n{_tail(each.directory / 'log')}")
    return 1 if failed or wrong else 0


def _play(arguments: argparse.Namespace, fleet: Fleet, edges: list[Edge], running: Masters, sender: Traffic) -> None:
    begun = time.monotonic()
    kill_at = {round((n + 0.5) * arguments.deploys / arguments.kills) for n in range(arguments.kills)}
    for number in range(arguments.deploys):
        killed = number in kill_at
        if killed:
            running.kill()
        fleet.roll(2, 1.5, lambda: _known(edges))
        print(f"  deploy {number + 1}: {_failures(sender.so_far())}{' (master killed)' if killed else ''}", flush=True)
    for number in range(arguments.scale_downs):
        _settle(fleet, edges)
        fleet.scale_down(4)
        fleet.pause(2)
        fleet.scale_up(4)
        fleet.pause(2)
        print(f"  scale-down {number + 1}: {_failures(sender.so_far())}", flush=True)
    _settle(fleet, edges)
    print(
        f"· {time.monotonic() - begun:.0f} s of deploys and scale-downs, {running.kills} masters killed, "
        f"the next after {', '.join(f'{gap:.1f}' for gap in running.gaps) or '-'} s",
        flush=True,
    )
    if arguments.crowd:
        # The stand-ins share one process, which is busy now: it would not answer a renewal within 2 s.
        running.replace({})
        _storm(fleet, edges, arguments.crowd)


def _storm(fleet: Fleet, edges: list[Edge], pods: int) -> None:
    """Many pods, of which a tenth change their state twice a second."""
    begun = time.monotonic()
    fleet.scale_up(pods)
    _settle(fleet, edges)
    print(f"· {pods} more pods in every proxy after {time.monotonic() - begun:.1f} s", flush=True)
    chance, reloads, begun, changes = (
        random.Random(1),
        {each.name: each.reloaded for each in edges},
        time.monotonic(),
        0,
    )
    while time.monotonic() < begun + 10:
        fleet.flip(0.1, chance)
        fleet.pause(0.5)  # the stand-ins share one process, and need their part of it
        changes += 1
    stormed = time.monotonic() - begun
    _settle(fleet, edges)
    seconds = time.monotonic() - begun
    print(
        f"· storm: {changes} changes of about {pods // 10} pods in {stormed:.0f} s; all proxies right {seconds - stormed:.1f} s later"
    )
    for each in edges:
        assert each.reloaded - reloads[each.name] <= seconds + 1, f"{each.name} was reloaded more than once a second"


def _settle(fleet: Fleet, edges: list[Edge]) -> None:
    fleet.pause(_PATIENCE_SECONDS, lambda: not fleet._ending and all(settled(each, fleet.ready) for each in edges))
    ready = set(fleet.ready)
    wrong = {each.name: taking_traffic(each.name, each.text) for each in edges if not settled(each, fleet.ready)}
    assert not wrong, (
        f"after {_PATIENCE_SECONDS:.0f} s these proxies do not have the {len(ready)} pods that are ready: "
        + ", ".join(
            f"{name} lacks {len(ready - found)} and has {len(found - ready)} others" for name, found in wrong.items()
        )
    )


def _known(edges: list[Edge]) -> set[str]:
    """The pods that take traffic in every proxy."""
    return set.intersection(*(taking_traffic(each.name, each.text) for each in edges))


def _failures(tallies: dict[str, Tally]) -> str:
    return ", ".join(f"{name} {len(tally.failed)}" for name, tally in tallies.items()) + " failed"


def _tail(path: Path) -> str:
    return "\n".join(path.read_text(errors="replace").splitlines()[-15:]) if path.exists() else ""


if __name__ == "__main__":
    sys.exit(main())
