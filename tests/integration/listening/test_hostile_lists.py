"""I9: a namespace does not make its cluster unlistable, whatever it writes and however much: nobody else notices."""

import pytest

from harness.hostile_list import FRIENDLY, Attack, play
from harness.seen.raw_objects import put_raw, raw_service
from harness.seen.resync_requests import a_request
from harness.stack import a_stack

HOSTNAME = "external-dns.kubernetes.io/hostname"


def test_i9_annotations_that_nobody_reads_do_not_keep_a_cluster_from_being_listed() -> None:
    """40 MB where a list may take 32 MB of memory, by one annotation a Service."""
    found = play(Attack(services=160, annotation="note"), memory_megabytes=128)
    assert (found.friendly, found.others, found.problems) == (FRIENDLY, 161, {})  # and default/kubernetes


def test_i9_annotations_that_are_read_leave_out_the_services_that_have_them_until_there_is_room() -> None:
    """The same in an annotation that is kept: those without room keep what they have, and a list with more room heals them."""
    with a_stack() as stack:
        stack.add_cluster()
        for number in range(160):
            name = f"b{number}.svc.prod.example.com," if number == 0 else f"{number:06}"
            put_raw(
                stack.api,
                raw_service(f"web-{number}", "flood", metadata={"annotations": {HOSTNAME: name.ljust(250_000, "x")}}),
            )
        put_raw(stack.api, raw_service("web", "shop"))
        running = stack.start(memory_megabytes=128)
        running.wait_for(stack.at_rest)
        assert "web.shop.svc.prod.example.com A" in stack.records()
        problems = stack.problems()
        left_out = [key for key, codes in problems.items() if "Unreadable" in codes]
        assert "shop/web" not in problems
        assert 30 <= len(left_out) <= 40
        running.end()

        stack.resync(a_request(), memory_megabytes=1024)
        assert [key for key, codes in stack.problems().items() if "Unreadable" in codes] == []
        assert len([name for name in stack.records() if ".flood." in name and name.endswith(" A")]) == 160


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("attack", "problems"),
    [
        pytest.param(Attack(services=1_570, annotation="note"), set(), id="thrown away", marks=pytest.mark.soak),
        pytest.param(
            Attack(services=1_570, annotation=HOSTNAME),
            {("flood", "Unreadable"), ("flood", "InvalidName")},
            id="kept",
            marks=pytest.mark.soak,
        ),
    ],
)
def test_i9_flood_of_annotations_takes_no_memory_and_no_record_from_others(
    attack: Attack, problems: set[tuple[str, str]]
) -> None:
    """392 MB of JSON in a function of 512 MB."""
    found = play(attack, memory_megabytes=512)
    assert found.friendly == FRIENDLY
    assert found.problems.keys() == problems
    assert found.peak_megabytes <= 400
