"""Every measuring program runs, in a size that measures nothing."""

import math

import pytest

from bench.__main__ import main
from bench.programs import PROGRAMS, measure

# What the small size cannot miss: it is not about time.
_EXACT = {
    "resumed-session": ["5 services: DynamoDB requests", "5 services: lists", "5 services: Route 53 calls"],
    "change-batches": ["1 changed sets"],  # whether more come in one window is about time
}


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=() if name in _EXACT else (pytest.mark.thorough, pytest.mark.soak))
        for name in sorted(PROGRAMS)
    ],
)
def test_program_measures_every_figure(name: str) -> None:
    figures = measure(name, small=True)

    measured = {figure.what: figure for figure in figures if not math.isnan(figure.value)}
    absent = {figure.what for figure in figures} - measured.keys()
    assert {what.rsplit(" ", 1)[1] for what in absent} <= {"kubernetes", "lightkube"}, "peers may not be installed"
    assert measured
    assert [measured[what].missed for what in _EXACT.get(name, [])] == [False] * len(_EXACT.get(name, []))


def test_unknown_program_is_wrong_use(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["no-such-figure"])

    assert ended.value.code == 2
    assert "no such program: no-such-figure; there are watch-stream, resumed-session" in capsys.readouterr().err
