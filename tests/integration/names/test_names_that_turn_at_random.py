"""Three clusters that share a name change what they want of it as drawn, and sessions die (ADR 0072)."""

from dataclasses import dataclass
from typing import Final

from hypothesis import example, given, settings, strategies as st

from harness.turning import ASIA, EU, MANY, NUMBERS, PRIMARY, SECONDARY, US, Turning
from kubesync.domain.objects import Resource
from simulation.writes import RECORD, SENT

POLICIES: Final[tuple[dict[str, str] | None, ...]] = (
    {},
    {"aws-weight": "5"},
    EU,
    US,
    ASIA,
    PRIMARY,
    SECONDARY,
    MANY,
    {"aws-geoproximity-region": "eu-west-1"},
    None,
)


@dataclass(frozen=True)
class Step:
    """``policy``: an index of ``POLICIES``; -1: the Service is deleted. ``dies``: the session, at its next write of this kind.

    ``seconds``: before the next step; None: until nothing happens any more. ``cname``: of a set that is not multivalue.
    """

    cluster: str
    policy: int
    dies: str = ""
    seconds: float | None = None
    cname: bool = False


steps = st.builds(
    Step,
    st.sampled_from("abc"),
    st.integers(-1, len(POLICIES) - 1),
    st.sampled_from(["", "", "", "", RECORD, SENT]),
    st.sampled_from([None, None, 0.0, 0.6]),
    st.sampled_from([False, False, True]),
)


@example([Step("a", 4), Step("c", 2), Step("c", 0)])
@example([Step("a", 6), Step("b", 5), Step("b", 0), Step("c", 0), Step("b", 6)])
@example([Step("a", 6), Step("b", 5), Step("a", 5), Step("b", 0), Step("b", 6)])
@example([Step(each[0], int(each[1])) for each in ("a3", "b3", "c2", "a4", "a8", "a0", "a3", "c8", "b0", "b4")])
@example(
    [
        *(Step("b", 1, seconds=0.6), Step("c", 7, seconds=0.0), Step("b", 0, seconds=0.0), Step("b", 4)),
        *(Step("a", 8, seconds=0.6), Step("b", 7), Step("b", 0), Step("b", 3, seconds=0.6), Step("b", 1, seconds=0.6)),
    ]
)
@example([Step("a", 3), Step("c", 2), Step("a", 5), Step("c", 4, dies=RECORD), Step("a", 2)])
@given(st.lists(steps, min_size=2, max_size=14))
@settings(max_examples=8, deadline=None)
def test_i9_clusters_that_change_policies_at_random_never_lose_the_name_nor_are_refused(drawn: list[Step]) -> None:
    deployment = Turning()
    asked: dict[str, Step] = {}
    before, moved = deployment.www(), set[str]()  # when nothing happened any more, and whose Services changed since
    for step in drawn:
        if step.policy < 0 and asked.pop(step.cluster, None) is None:
            continue
        if step.dies:
            deployment.at(step.dies, deployment.kill)
        if step.policy < 0:
            deployment.clusters[step.cluster].delete(Resource.SERVICES, "web", "shop")
        else:
            asked[step.cluster] = step
            policy = POLICIES[step.policy]
            deployment.ask(step.cluster, policy, seconds=0.0, cname=step.cname and policy is not MANY)
        moved.add(step.cluster)
        if step.seconds is not None and not step.dies:
            deployment.pass_time(step.seconds)
            continue
        deployment.play_out(12.0, dies=bool(step.dies))
        stands = deployment.www()
        assert len({text.split(" ")[0] for text in stands.values()}) <= 1
        assert deployment.refusals == []
        held = {text[-1] for text in before.values()} - {str(NUMBERS[each]) for each in moved}
        assert held <= {text[-1] for text in stands.values()}, "who had it and did not change has it"
        assert stands or not asked
        assert deployment.heirs() == []
        before, moved = stands, set()
    deployment.pass_time(12.0)
    assert deployment.refusals == []
    # In the end all want the same policy: whatever was asked before, they have it.
    for cluster in NUMBERS:
        deployment.ask(cluster, MANY, 12.0)
    deployment.pass_time(30.0)
    assert deployment.www() == {"a": "multivalue at 1", "b": "multivalue at 2", "c": "multivalue at 3"}
    deployment.at_rest()
    deployment.close()
