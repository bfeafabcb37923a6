"""Commands that change something, on a real terminal: what they show and ask, and that only a yes changes anything."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import pytest

from harness.cli_stack import CliStack, a_cli_stack
from harness.dialogue import CTRL_C, END_OF_INPUT, a_dialogue
from harness.terminal import on_a_terminal, shown_on
from kubesync.aws.dynamodb.store import CONTROL, STATE
from kubesync_local.workplace.registry import ClusterRegistry

WAS: Final = "nothing was changed"
NO_CHANGE: Final = f"kubesync: {WAS}"


def prepared(made: CliStack) -> CliStack:
    """Ten Services and the cluster's own, published."""
    for number in range(10):
        made.api.cluster.expose("shop", f"s{number}", {"ports": [{"port": 80}], "clusterIP": f"10.68.0.{10 + number}"})
    assert made.add_cluster().status == 0
    assert made.session().json["clean"]
    return made


@pytest.fixture(scope="module")
def stack() -> Iterator[CliStack]:
    """For commands in this process."""
    with a_cli_stack(in_memory=True) as made:
        yield prepared(made)


@pytest.fixture(scope="module")
def served() -> Iterator[CliStack]:
    """For commands in processes of their own: only these have signals and an end of their input."""
    with a_cli_stack() as made:
        assert made.call("setup").status == 0
        yield prepared(made)


@dataclass(frozen=True, slots=True)
class Asked:
    """A command that asks.

    Args:
        command: ``{file}`` and ``{other}`` are files of clusters, see ``asked``.
        shown: lines that stand before the question.
    """

    command: tuple[str, ...]
    question: str
    shown: tuple[str, ...]


REMOVE: Final = Asked(
    ("cluster", "remove", "prod"),
    "Remove cluster prod? Delete 12 record sets in 1 zone and 11 upstreams? [y/N] ",
    (
        "  - kubernetes.default.svc.prod.example.com A 10.68.0.1 ttl 30  (prod/default/kubernetes)",
        "  - s7.shop.svc.prod.example.com A 10.68.0.17 ttl 30  (prod/shop/s7)",
        "  ... and 2 more",
        "0 to add, 0 to change, 23 to delete, 0 held back",
    ),
)
RETAIN: Final = Asked(
    ("cluster", "remove", "prod", "--retain"),
    "Remove cluster prod, and keep its 12 record sets and 11 upstreams? [y/N] ",
    (
        "  ! s0.shop.svc.prod.example.com A 10.68.0.10 ttl 30  (prod/shop/s0)",
        "12 record sets and 11 upstreams stay",
    ),
)
SET: Final = Asked(
    ("cluster", "set", "prod", "--ttl", "600"),
    "Change cluster prod? Make 12 changes? [y/N] ",
    (
        "cluster prod",
        "  ~ ttl 30 -> 600",
        "  ~ s0.shop.svc.prod.example.com A 10.68.0.10 ttl 30 -> 10.68.0.10 ttl 600  (prod/shop/s0)",
        "0 to add, 12 to change, 0 to delete, 0 held back",
    ),
)
"""``--replace`` needs the address of a server: see ``asked``."""
REPLACE: Final = Asked(
    ("cluster", "add", "prod", "--replace", "--ttl", "90"),
    "Change cluster prod? Make 12 changes? [y/N] ",
    ("  ~ ttl 30 -> 90", "0 to add, 12 to change, 0 to delete, 0 held back"),
)
APPLY: Final = Asked(
    ("cluster", "apply", "-f", "{file}"),
    "Change 1 cluster? Make 12 changes? [y/N] ",
    ("  ~ ttl 30 -> 77", "0 to add, 12 to change, 0 to delete, 0 held back"),
)
PRUNE: Final = Asked(
    ("cluster", "apply", "-f", "{other}", "--prune"),
    "Add 1 cluster, remove 1 cluster? Delete 12 record sets in 1 zone and 11 upstreams? [y/N] ",
    (
        "cluster other: new",
        "cluster prod: removed",
        "  - cluster prod",
        "not known before the first list: the record sets of cluster other",
        "0 to add, 0 to change, 23 to delete, 0 held back",
    ),
)
RECOVER: Final = Asked(
    ("recover", "--apply"),
    "Take over no record set, and only raise the epoch above the zones' journals? [y/N] ",
    ("prod: record sets: 0 to take over, 0 in another form, 0 that no cluster wants",),
)
ALL: Final = {"remove": REMOVE, "retain": RETAIN, "set": SET, "replace": REPLACE, "apply": APPLY, "prune": PRUNE, "recover": RECOVER}  # fmt: skip


def asked(stack: CliStack, folder: Path, of: Asked) -> list[str]:
    """The command line."""
    common = f"server: {stack.api.url}, token: env:KUBESYNC_TEST_TOKEN, zones: [{stack.zone_id}]"
    (folder / "same.yaml").write_text(f"clusters: [{{name: prod, domain: prod.example.com, ttl: 77, {common}}}]\n")
    (folder / "other.yaml").write_text(f"clusters: [{{name: other, domain: other.example.com, {common}}}]\n")
    command = [part.format(file=folder / "same.yaml", other=folder / "other.yaml") for part in of.command]
    if "--replace" in command:
        command += ["--server", stack.api.url, "--domain", "prod.example.com", "--zone", stack.zone_id]
        command += ["--token", "env:KUBESYNC_TEST_TOKEN"]
    return command


def stored(stack: CliStack) -> Mapping[str, object]:
    """What commands could change: configurations, roles of zones, keys, and the zone. A dry run is a session: leases and fences change."""
    control = [item for item in stack.store.scan(CONTROL) if item["pk"] in ("clusters", "zones")]
    records = {str(key): str(value) for key, value in stack.route53.records(stack.zone_id).items()}
    return {"clusters": sorted(map(str, control)), "keys": sorted(map(str, stack.store.scan(STATE))), "zone": records}


def typed_on_a_terminal(stack: CliStack, command: list[str], keys: str) -> tuple[int, list[str]]:
    status, written = on_a_terminal(*command, environment=stack.environment, typed=keys)
    return status, shown_on(written.decode()).split("\n")


@pytest.mark.parametrize("answer", ["n", "", "yess", "no", "Y E S"])
@pytest.mark.parametrize("name", ALL)
def test_anything_but_yes_changes_nothing(stack: CliStack, tmp_path: Path, name: str, answer: str) -> None:
    of, before = ALL[name], stored(stack)

    status, lines = typed_on_a_terminal(stack, asked(stack, tmp_path, of), f"{answer}\n")

    assert status == 1, lines
    assert [line for line in of.shown if line not in lines] == []
    assert lines[-2:] == [f"{of.question}{NO_CHANGE}", ""]  # a raw terminal: what is typed is not shown
    assert stored(stack) == before


ENDS = [
    pytest.param(END_OF_INPUT, 1, NO_CHANGE, id="end of input"),
    pytest.param(CTRL_C, 130, f"kubesync: interrupted: {WAS}", id="ctrl-c"),
]
# `make test` asks two of the questions.
QUESTIONS = [
    "remove",
    "set",
    *(pytest.param(each, marks=pytest.mark.thorough) for each in ("prune", "recover", "replace")),
]


@pytest.mark.parametrize(("keys", "ended", "said"), ENDS)
@pytest.mark.parametrize("name", QUESTIONS)
def test_end_of_input_and_interruption_change_nothing(
    served: CliStack, tmp_path: Path, name: str, keys: str, ended: int, said: str
) -> None:
    of, before = ALL[name], stored(served)
    with a_dialogue(*asked(served, tmp_path, of), environment=served.environment) as dialogue:
        dialogue.read_until("[y/N] ")
        dialogue.type(keys)
        status = dialogue.end()

    lines = dialogue.text.split("\n")
    assert status == ended, dialogue.text
    assert any(line.startswith(of.question) for line in lines), dialogue.text
    assert lines[-2:] == [said, ""]
    assert stored(served) == before


def settings(stack: CliStack) -> dict[str, object]:
    """Name to TTL, and whether it is being removed."""
    return {config.name: (config.ttl, config.deleting) for config in ClusterRegistry(stack.store).all()}


DONE: Final = [
    pytest.param("set", {"prod": (600, False)}, "cluster prod changed: ttl 30 -> 600", id="set"),
    pytest.param("replace", {"prod": (90, False)}, "changed: ttl 30 -> 90", id="replace"),
    pytest.param("apply", {"prod": (77, False)}, "cluster prod changed: ttl 30 -> 77", id="apply"),
    pytest.param("prune", {"prod": (30, True), "other": (30, False)}, "cluster prod is being removed", id="prune"),
    pytest.param("remove", {"prod": (30, True)}, "cluster prod is being removed, with its 12 record sets and 11 upstreams "
                 "(`--retain` keeps those that are left); the next session does it", id="remove"),
    pytest.param("recover", {"prod": (30, False)}, "prod: record sets: 0 to take over, 0 in another form, 0 that no cluster wants",
                 id="recover"),
]  # fmt: skip


@pytest.mark.parametrize(("name", "left", "said"), DONE)
@pytest.mark.parametrize("how", ["y", "yes", "--yes", "a pipe"])
def test_yes_does_it_and_so_does_a_pipe_where_it_always_did(
    tmp_path: Path, name: str, left: Mapping[str, object], said: str, how: str
) -> None:
    of = ALL[name]
    with a_cli_stack(in_memory=True) as stack:
        command = asked(prepared(stack), tmp_path, of)
        if how == "a pipe":
            ran = stack.call(*command)
            status, lines = ran.status, ran.lines
            if name == "prune":  # a new command: it removes nothing unasked
                assert (status, lines) == (
                    2,
                    [f"kubesync: --prune would remove prod, and this is not a terminal: confirm with --yes; {WAS}"],
                )
                assert settings(stack) == {"prod": (30, False)}
                return
        elif how == "--yes":
            status, lines = typed_on_a_terminal(stack, [*command, "--yes"], "n\n")
        else:
            status, lines = typed_on_a_terminal(stack, command, f"{how}\n")
        assert status == 0, lines
        assert any(line.endswith(said) for line in lines), lines
        assert any("[y/N]" in line for line in lines) is (how in ("y", "yes"))
        assert settings(stack) == left


def test_removal_that_nobody_can_be_asked_about_needs_yes_where_the_command_is_new(stack: CliStack) -> None:
    before = stored(stack)
    ran = stack.call("cluster", "set", "prod", "--no-srv")

    assert (ran.status, ran.lines[-1]) == (
        2,
        f"kubesync: Delete 1 record set in 1 zone? Not a terminal: confirm with --yes; {WAS}",
    )
    assert ran.lines[0] == "cluster prod"
    assert stored(stack) == before


@pytest.mark.parametrize("name", ["remove", "recover"])
def test_command_whose_input_is_no_terminal_does_what_it_always_did(tmp_path: Path, name: str) -> None:
    """Such as in a script that a person started: nobody would answer."""
    with a_cli_stack(in_memory=True) as stack:
        command = asked(prepared(stack), tmp_path, ALL[name])
        status, written = on_a_terminal(*command, environment=stack.environment)

        assert status == 0, written
        assert b"[y/N]" not in written
        assert settings(stack) == {"prod": (30, name == "remove")}
