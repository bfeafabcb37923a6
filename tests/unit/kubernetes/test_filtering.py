"""Objects of other namespaces: kept from the sink, and counted as seen."""

from collections.abc import Sequence

import pytest

from kubesync.domain.objects import RawEvent, Resource
from kubesync.domain.sources.scope import Scope
from kubesync.kubernetes.watch import FilteredSink


class Told:
    """A sink that notes what it is told."""

    def __init__(self) -> None:
        self.calls: list[object] = []

    def on_events(self, events: Sequence[RawEvent]) -> None:
        self.calls.append([(event.namespace, event.resource_version) for event in events])

    def on_bookmark(self, resource_version: int) -> None:
        self.calls.append(resource_version)


def event(namespace: str, version: int) -> RawEvent:
    return RawEvent("ADDED", Resource.SERVICES, namespace, "web", "uid", version, b"{}")


@pytest.mark.parametrize(
    ("events", "told"),
    [
        ([("shop", 1), ("bill", 2)], [[("shop", 1), ("bill", 2)]]),
        ([("test", 1), ("shop", 2)], [[("shop", 2)]]),
        # Everything up to the last one has been seen: nothing of it is asked for again.
        ([("shop", 1), ("test", 2)], [[("shop", 1)], 2]),
        ([("test", 1), ("default", 2)], [2]),
    ],
)
def test_events_of_other_namespaces_are_left_out_and_move_the_checkpoint(
    events: list[tuple[str, int]], told: list[object]
) -> None:
    sink = Told()
    FilteredSink(sink, Scope(("shop", "bill"))).on_events([event(*each) for each in events])
    assert sink.calls == told
