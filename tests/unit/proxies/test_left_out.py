"""What is said of nodes that are left out: other reasons at once, numbers once a minute, nothing twice."""

from kubesync_local.proxies.bounds import Tally, Why
from kubesync_local.proxies.left_out import LeftOut

WEB, API = "prod/shop/web/80/TCP", "prod/shop/api/80/TCP"


def _over(number: int, nodes: int = 10) -> Tally:
    tally = Tally(nodes=nodes)
    tally.leave_out(Why.OVER_LIMIT, number)
    return tally


class _Said:
    def __init__(self) -> None:
        self.time = 0.0
        self.lines: list[str] = []
        self.left_out = LeftOut(3, self.lines.append, lambda: self.time)

    def after(self, seconds: float, **tallies: Tally) -> list[str]:
        """What is said when these are rendered so much later."""
        self.time += seconds
        before = len(self.lines)
        for name, tally in tallies.items():
            self.left_out.note({"web": WEB, "api": API}[name], tally)
        self.left_out.report()
        return self.lines[before:]


def test_numbers_that_change_are_said_once_a_minute_also_when_nothing_more_changes() -> None:
    said = _Said()

    assert said.after(0, web=_over(7)) == [f"{WEB}: 7 of 10 nodes left out: 7 over --max-nodes 3"]
    assert said.after(1) == []
    assert said.after(30, web=_over(8)) == []
    assert said.after(1, web=_over(9)) == []
    assert said.after(27) == []
    assert said.after(1) == [f"{WEB}: 9 of 10 nodes left out: 9 over --max-nodes 3"]
    assert said.after(600, web=_over(9)) == []
    assert said.after(0, web=_over(6)) == [f"{WEB}: 6 of 10 nodes left out: 6 over --max-nodes 3"]


def test_another_reason_is_said_at_once() -> None:
    said = _Said()
    said.after(0, web=_over(7))
    invalid = _over(7)
    invalid.leave_out(Why.INVALID, 1)

    assert said.after(1, web=invalid) == [
        f"{WEB}: 8 of 10 nodes left out: 1 whose address, port, weight or state is not valid, 7 over --max-nodes 3"
    ]
    assert said.after(1, api=_over(1)) == [
        f"{API}: 1 of 10 nodes left out: 1 over --max-nodes 3", "in sum 9 of 20 nodes left out, of 2 of 2 upstreams",
    ]  # fmt: skip
    assert said.after(1, web=Tally(nodes=2)) == [f"{WEB}: no node is left out any more"]


def test_upstream_that_is_gone_is_no_longer_counted_and_said_again_when_it_is_back() -> None:
    said = _Said()
    said.after(0, web=_over(7), api=_over(1))
    said.left_out.forget_all_but({API: None})

    assert said.after(1) == []
    assert (said.left_out.upstreams, said.left_out.by_reason()[Why.OVER_LIMIT]) == (1, 1)
    assert said.after(1, web=_over(7))[0] == f"{WEB}: 7 of 10 nodes left out: 7 over --max-nodes 3"
