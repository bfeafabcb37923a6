"""The report of a resync fits every way of answering, and its counts stay exact."""

import json
from typing import Any

from kubesync.operations.resync_progress import figures_of, with_counts, within_limits


def rows(count: int, text: str = "x" * 80) -> list[dict[str, Any]]:
    return [{"what": f"{text} {number}"} for number in range(count)]


def a_report(**clusters: dict[str, Any]) -> dict[str, Any]:
    held: dict[str, Any] = {"held_deletions": []}
    return {
        "dry_run": True,
        "forced": False,
        "clusters": [with_counts({"cluster": name, **held, **lists}) for name, lists in clusters.items()],
    }


def test_short_report_stays_as_it_is() -> None:
    report = a_report(prod={"changes": rows(3), "drift": []}, away={"error": "no answer"})

    cut = within_limits(report, 10_000)

    assert cut == report
    assert cut["clusters"][0]["counts"] == {"changes": 3, "drift": 0, "held_deletions": 0}


def test_long_lists_are_cut_and_counted() -> None:
    cut = within_limits(a_report(prod={"changes": rows(5_000), "drift": rows(7), "conflicts": rows(2_000)}), 50_000)

    assert len(json.dumps(cut)) <= 50_000
    (prod,) = cut["clusters"]
    assert prod["counts"] == {"changes": 5000, "drift": 7, "conflicts": 2000, "held_deletions": 0}
    assert len(prod["drift"]) == 7  # short ones stay whole
    assert {name: len(prod[name]) + prod["left_out"][name] for name in prod["left_out"]} == {
        "changes": 5000,
        "conflicts": 2000,
    }
    assert abs(len(prod["changes"]) - len(prod["conflicts"])) <= 2  # an equal share
    assert prod["changes"] == rows(5_000)[: len(prod["changes"])]
    assert len(json.dumps(cut)) > 45_000


def test_one_loud_cluster_takes_nothing_from_the_others() -> None:
    cut = within_limits(a_report(loud={"changes": rows(5_000)}, quiet={"changes": rows(20)}), 20_000)

    loud, quiet = cut["clusters"]
    assert "left_out" in loud
    assert quiet["changes"] == rows(20)
    assert "left_out" not in quiet


def test_text_beyond_ascii_is_counted_in_its_longest_form() -> None:
    cut = within_limits(a_report(prod={"changes": rows(1_000, "ü" * 80)}), 50_000)

    assert len(json.dumps(cut)) <= 50_000
    assert len(cut["clusters"][0]["changes"]) > 90


def test_row_that_is_too_long_by_itself_is_left_out() -> None:
    cut = within_limits(a_report(prod={"changes": rows(1, "x" * 60_000), "drift": rows(3)}), 50_000)

    (prod,) = cut["clusters"]
    assert (prod["changes"], len(prod["drift"]), prod["left_out"]) == ([], 3, {"changes": 1})


def test_held_deletions_are_counted_by_listener() -> None:
    held = [{"listener": "services"}] * 3 + [{"listener": "endpoints"}]

    assert with_counts({"cluster": "prod", "held_deletions": held})["held_counts"] == {"services": 3, "endpoints": 1}


def test_named_upstreams_that_could_not_be_compared_are_errors() -> None:
    row = {"upstream": "named/*", "drift": "unknown", "error": "no answer"}

    assert figures_of({"clusters": [], "named_upstreams": [row]}) == {"clusters": 0, "errors": 1, "differences": 0}
