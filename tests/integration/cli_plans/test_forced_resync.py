"""``kubesync resync --force`` on a terminal: it shows what goes, asks, and looks again where the answer took long."""

from collections.abc import Iterator
from typing import Any, Final

import pytest

from harness.cli_stack import CliStack, a_cli_stack
from harness.terminal import on_a_terminal, shown_on
from kubesync_local.commands.run import forcing
from kubesync_local.terminal import asking

QUESTION: Final = "Delete 5 record sets in 1 zone and 5 upstreams? [y/N] "


@pytest.fixture
def stack() -> Iterator[CliStack]:
    """Twelve Services, published; then a list lacks five of them, and their deletion is held back."""
    with a_cli_stack(in_memory=True) as made:
        for number in range(12):
            expose(made, f"s{number}")
        assert made.add_cluster().status == 0
        assert made.session().json["clean"]
        for number in range(5):
            made.api.cluster.delete_service("shop", f"s{number}")
        resynced = made.call("resync")
        assert resynced.status == 0, resynced.err
        yield made


def expose(stack: CliStack, name: str) -> None:
    stack.api.cluster.expose("shop", name, {"ports": [{"port": 80}]})


def typed(stack: CliStack, *command: str, keys: str) -> tuple[int, str]:
    status, written = on_a_terminal(*command, environment=stack.environment, typed=keys)
    return status, shown_on(written.decode())


def services_in(stack: CliStack) -> set[str]:
    return {name.partition(".")[0] for name in stack.zone_records() if ".shop." in name}


def test_plan_counts_what_is_held_back_and_forced_it_counts_deletions(stack: CliStack) -> None:
    held, forced = stack.call("plan", "--exit-code", COLUMNS=""), stack.call("plan", "--force", "--exit-code")

    assert (held.status, held.out.splitlines()[-1]) == (3, "0 to add, 0 to change, 0 to delete, 5 held back")
    assert "  ! services/s0  (a list lacks it; prod/shop/s0 stays as it is)" in held.out.splitlines()
    why = "prod: the list lacks 5 of 13 objects, more than 30%; `kubesync resync --cluster prod --force` lets the deletions through"
    assert held.out.splitlines()[-2] == why
    assert (forced.status, forced.out.splitlines()[-1]) == (3, "0 to add, 0 to change, 10 to delete, 0 held back")


@pytest.mark.parametrize("keys", ["n\n", "\n", "maybe\n"])
def test_no_deletes_nothing(stack: CliStack, keys: str) -> None:
    before = stack.zone_records()

    status, text = typed(stack, "resync", "--force", keys=keys)

    assert status == 1
    assert text.endswith(f"0 to add, 0 to change, 10 to delete, 0 held back\n{QUESTION}kubesync: nothing was changed\n")
    assert stack.zone_records() == before


@pytest.mark.parametrize("how", ["y", "--yes", "a pipe"])
def test_yes_and_a_pipe_delete(stack: CliStack, how: str) -> None:
    if how == "a pipe":
        ran = stack.call("resync", "--force")
        assert (ran.status, ran.json["forced"], ran.json["dry_run"]) == (0, True, False)
    else:
        options, keys = (["--yes"], "n\n") if how == "--yes" else ([], "y\n")
        status, text = typed(stack, "resync", "--force", *options, keys=keys)
        assert status == 0, text
        assert (QUESTION in text) is (how == "y")
        assert text.endswith("\nprod: 5 keys changed, 0 record sets drifted, 0 conflicts\n"), "no JSON scrolls by"
    assert services_in(stack) == {f"s{number}" for number in range(5, 12)}


def test_nothing_to_do_is_not_asked(stack: CliStack) -> None:
    assert stack.call("resync", "--force").status == 0

    status, text = typed(stack, "resync", "--force", keys="n\n")

    assert status == 0
    assert "[y/N]" not in text
    assert "\nnothing to do\n" in text


def test_slow_answer_is_not_taken_for_deletions_that_were_not_shown(
    stack: CliStack, monkeypatch: pytest.MonkeyPatch
) -> None:
    """While the question stands, two more Services go. They are shown, and asked about again."""
    monkeypatch.setattr(forcing, "FRESH_SECONDS", -1.0)  # every answer took long
    confirm = asking.confirm
    questions: list[str] = []

    def slow(question: str) -> None:
        if not questions:
            for name in ("s5", "s6"):
                stack.api.cluster.delete_service("shop", name)
        questions.append(question)
        confirm(question)

    monkeypatch.setattr(forcing, "confirm", slow)
    before = stack.zone_records()
    status, text = typed(stack, "resync", "--force", keys="y\nn\n")

    assert status == 1
    assert "the answer took long: comparing again\n" in text
    assert "more would be deleted now than was shown\n" in text
    assert questions == [
        "Delete 5 record sets in 1 zone and 5 upstreams?",
        "Delete 7 record sets in 1 zone and 7 upstreams?",
    ]
    assert stack.zone_records() == before


def test_slow_answer_runs_if_nothing_more_goes(stack: CliStack, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(forcing, "FRESH_SECONDS", -1.0)

    status, text = typed(stack, "resync", "--force", keys="y\n")

    assert status == 0
    assert text.count("[y/N]") == 1
    assert services_in(stack) == {f"s{number}" for number in range(5, 12)}


def test_cluster_that_cannot_be_compared_is_not_forced_unseen(stack: CliStack) -> None:
    stack.environment["KUBESYNC_TEST_TOKEN"] = "of somebody else"
    before: Any = stack.zone_records()

    status, text = typed(stack, "resync", "--force", keys="y\n")

    assert status == 1
    assert "what would be deleted there cannot be shown, and nothing was changed" in text
    assert "[y/N]" not in text
    assert stack.zone_records() == before
