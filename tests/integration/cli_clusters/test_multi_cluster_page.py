"""docs/multi-cluster.md played: the test runs the page's own commands, and asks what Route 53 answers (``standins.route53.zone.answers``).

A session runs at each ``explain`` and ``upstream show`` of the page, until the zone, or the upstream, is as the test says.
"""

import re
import shlex
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Final

import pytest
import yaml

from harness.cli_stack import TOKEN, CliStack, Ran, a_cli_stack
from kubesync_local.standins.apiserver import ApiServer
from kubesync_local.standins.route53.zone.answers import HealthCheck, Resolver

PAGE: Final = Path(__file__).resolve().parents[3] / "docs/multi-cluster.md"
WEB: Final = "web.shop.svc.k8s.example.com"
FIRST, SECOND = "10.68.0.10", "10.68.0.20"
PREFIX: Final = "external-dns.kubernetes.io/"


class Player:
    """A person with the page. ``FIRST`` is ``web`` of the cluster that was there first, ``SECOND`` that of the other one.

    Args:
        names: the two clusters, in the page's words.
    """

    def __init__(self, stack: CliStack, servers: Sequence[ApiServer], names: Sequence[str], folder: Path) -> None:
        self.stack, self.apis, self._folder = stack, dict(zip(names, servers, strict=True)), folder
        self.away: list[str] = []
        self.shown: list[Ran] = []
        stack.make_tables()

    def serve(self, cluster: str, address: str, **annotations: str) -> None:
        """Service ``web`` of a cluster."""
        body = {"ports": [{"port": 80}], "clusterIP": address, "ipFamilies": ["IPv4"]}
        asked = {f"{PREFIX}{name.replace('_', '-')}": text for name, text in annotations.items()}
        self.apis[cluster].cluster.expose("shop", "web", body, annotations=asked)

    def play(self, section: str, looks: Sequence[Any]) -> None:
        """Run every command of a section, in the page's order; ``looks``: what is expected at each look."""
        (text,) = re.findall(rf"^## {section}\n(.*?)(?=^## )", PAGE.read_text(), re.MULTILINE | re.DOTALL)
        self._manifest = next(iter(re.findall(r"^```yaml\n(.*?)^```", text, re.MULTILINE | re.DOTALL)), "")
        lines = re.sub(r"\\\n\s*", " ", re.sub(r"^```.*?^```", "", text, flags=re.MULTILINE | re.DOTALL)).splitlines()
        expected = list(looks)
        for command in [line.strip() for line in lines if line.startswith("    ")]:
            words = shlex.split(command)
            if words[1:] in (["explain", WEB], ["upstream", "show", "web"]):
                self._look(expected.pop(0))
            self._run(words)
        assert expected == []

    def _run(self, words: list[str]) -> None:
        match words:
            case ["aws", "route53", "create-health-check", *_]:
                return
            case ["kubesync", *rest]:
                self._kubesync(rest)
            case ["kubectl", "--context", context, "apply", "-f", "web.yaml"]:
                made = yaml.safe_load(self._manifest)
                asked = {key.removeprefix(PREFIX): text for key, text in made["metadata"]["annotations"].items()}
                assert (made["metadata"]["name"], made["metadata"]["namespace"]) == ("web", "shop")
                self.serve(context, SECOND, **asked)
            case ["kubectl", "--context", context, "-n", namespace, "annotate", "service", name, *rest]:
                key, _, text = next(word for word in rest if word != "--overwrite").partition("=")
                change = {key.removesuffix("-"): text or None}
                self.apis[context].cluster.change_service(namespace, name, {"metadata": {"annotations": change}})
            case ["kubectl", "--context", context, "-n", namespace, "delete", "service", name]:
                self.apis[context].cluster.delete_service(namespace, name)
            case _:
                raise AssertionError(f"the page has a command that nobody plays: {words}")

    def _kubesync(self, words: list[str]) -> None:
        words = [word.replace("Z0123456789ABCDEFGHIJ", self.stack.zone_id) for word in words]
        if "--eks" in words:
            at = words.index("--eks")
            of_server = ["--server", self.apis[words[at + 1]].url, "--token", "env:KUBESYNC_TEST_TOKEN"]
            words = [*words[:at], *of_server, *words[at + 2 :]]
        if words[:2] in (["cluster", "set"], ["cluster", "remove"]):
            words.append("--yes")  # a person answers the question
        words = [str(self._folder / word) if word == "web.conf" else word for word in words]
        ran = self.stack.call(*words)
        assert ran.status == 0, (words, ran.out, ran.err)
        self.shown.append(ran)

    def _look(self, expected: Any) -> None:
        seen = (
            self.nodes if isinstance(expected, list) else self.weights if isinstance(expected, dict) else self.answers
        )
        ran = self.stack.session(lambda: seen() == expected)
        assert ran.json["clean"]
        assert seen() == expected

    # --- what stands outside ---

    def weights(self) -> dict[str, str]:
        """The weight of each set of ``web``; of a simple one its address."""
        return {
            key.identifier: each.routing[0].text if each.routing else each.values[0]
            for key, each in self.stack.route53.records(self.stack.zone_id).items()
            if (key.name, key.type) == (f"{WEB}.", "A")
        }

    def answers(self, dead: str = "") -> set[str]:
        """Everything that Route 53 may answer. ``dead``: the end of the id of a health check that is not healthy."""
        sets = list(self.stack.route53.records(self.stack.zone_id).values())
        checks = {each.health_check_id: HealthCheck(lambda: True) for each in sets if each.health_check_id}
        for found in (each for each in checks if dead and each.endswith(dead)):
            checks[found].healthy = False
        return set().union(*Resolver(sets, checks).possible(f"{WEB}.", "A"))

    def nodes(self) -> list[tuple[str, int, bool]]:
        """Address, weight and whether it is a backup, of each node of the named upstream."""
        rows = self.stack.call("upstreams", "-o", "json").json
        return [
            (node["ip"], node.get("weight", 1), node.get("backup", False))
            for row in rows
            if row["upstream"] == "named/web"
            for node in row["nodes"]
        ]

    def always_there(self) -> None:
        """After each batch that was accepted since the name was there first, it was there."""
        sets, seen = set[tuple[str, str]](), False
        for call in self.stack.route53.batches(self.stack.zone_id):
            if not call.accepted:
                continue
            for change in call.changes:
                key = change.record_set.key
                if key.name == f"{WEB}.":
                    (sets.discard if change.action == "DELETE" else sets.add)((key.type, key.identifier))
            seen = seen or bool(sets)
            assert sets or not seen


@pytest.fixture
def clusters(request: pytest.FixtureRequest) -> Iterator[tuple[CliStack, list[ApiServer]]]:
    """The stack, and the clusters' API servers. ``render`` reads tables past this process: then they are outside."""
    with ExitStack() as resources:
        stack = resources.enter_context(a_cli_stack(in_memory=getattr(request, "param", True)))
        yield stack, [resources.enter_context(ApiServer(tokens={TOKEN: "admin"})) for _ in range(2)]


def a_player(clusters: tuple[CliStack, list[ApiServer]], folder: Path, *names: str) -> Player:
    player = Player(*clusters, names, folder)
    player.serve(names[0], FIRST)
    return player


def add(player: Player, name: str, *options: str) -> None:
    """As the page supposes it."""
    player._run(
        ["kubesync", "cluster", "add", name, "--eks", name, "--domain", "k8s.example.com", "--zone", "Z0123456789ABCDEFGHIJ",
         "--template", "default", *options]
    )  # fmt: skip


def test_active_active(clusters: tuple[CliStack, list[ApiServer]], tmp_path: Path) -> None:
    player = a_player(clusters, tmp_path, "west", "east")
    player.serve("east", SECOND)
    player.play("Active-active", [{FIRST, SECOND}])
    assert (player.answers(dead="1"), player.answers(dead="2")) == ({SECOND}, {FIRST})
    player.always_there()


def test_active_active_of_a_cluster_that_is_registered(
    clusters: tuple[CliStack, list[ApiServer]], tmp_path: Path
) -> None:
    player = a_player(clusters, tmp_path, "west", "east")
    add(player, "west")
    player._look({"": FIRST})
    player._run(["kubesync", "cluster", "set", "west", "--routing", "multivalue"])
    player._look({"west": "true"})
    player.always_there()


def test_failover(clusters: tuple[CliStack, list[ApiServer]], tmp_path: Path) -> None:
    player = a_player(clusters, tmp_path, "west", "east")
    player.serve("east", SECOND)
    player.play("Failover", [{"west": "PRIMARY", "east": "SECONDARY"}])
    assert (player.answers(), player.answers(dead="1")) == ({FIRST}, {SECOND})


def test_blue_green(clusters: tuple[CliStack, list[ApiServer]], tmp_path: Path) -> None:
    player = a_player(clusters, tmp_path, "blue", "green")
    player.serve("green", SECOND)
    add(player, "blue")
    player._look({"": FIRST})
    player.play(
        "Blue-green",
        [
            {"blue": "100", "green": "0"},
            {"blue": "100", "green": "10"},
            {"blue": "0", "green": "100"},
            {"green": "100"},
            {"": SECOND},
        ],
    )
    player.always_there()
    assert player.answers() == {SECOND}
    assert [row["name"] for row in player.stack.call("cluster", "list", "-o", "json").json] == ["green"]


def test_service_that_moves(clusters: tuple[CliStack, list[ApiServer]], tmp_path: Path) -> None:
    player = a_player(clusters, tmp_path, "west", "east")
    add(player, "west", "--routing", "weighted=100")
    add(player, "east", "--routing", "weighted=100")
    player._look({"west": "100"})
    looks: list[Mapping[str, str]] = [{"west": "100", "east": "0"}, {"west": "0", "east": "100"}, {"east": "100"}]
    player.play("A Service that moves", looks)
    player.always_there()
    assert player.answers() == {SECOND}


def test_another_policy(clusters: tuple[CliStack, list[ApiServer]], tmp_path: Path) -> None:
    player = a_player(clusters, tmp_path, "west", "east")
    player.serve("east", SECOND)
    for name in ("west", "east"):
        add(player, name, "--routing", "weighted=100")
    player._look({"west": "100", "east": "100"})
    player.play("Another policy", [{"west": "100", "east": "100"}, {"west": "true", "east": "true"}])
    player.always_there()
    assert player.answers() == {FIRST, SECOND}


@pytest.mark.parametrize("clusters", [False], indirect=True)
def test_same_for_proxies(clusters: tuple[CliStack, list[ApiServer]], tmp_path: Path) -> None:
    player = a_player(clusters, tmp_path, "west", "east")
    player.serve("east", SECOND)
    for name, address in (("west", "10.1.0.1"), ("east", "10.2.0.1")):
        add(player, name, "--routing", "weighted")
        player.apis[name].cluster.make_endpoints(
            "shop", "web", [{"addresses": [{"ip": address}], "ports": [{"port": 80}]}]
        )
    both = [("10.1.0.1", 1, False), ("10.2.0.1", 1, False)]
    tenth = [("10.1.0.1", 9, False), ("10.2.0.1", 1, False)]
    backup = [("10.1.0.1", 1, False), ("10.2.0.1", 1, True)]
    player.play("The same for proxies", [both, tenth, backup])
    written = (tmp_path / "web.conf").read_text()
    assert re.findall(r"server [^;]+;", written) == ["server 10.1.0.1:80;", "server 10.2.0.1:80 backup;"]


def test_health_checks_of_the_page_have_the_interval_that_the_story_has() -> None:
    """``names/test_clusters_that_die`` shows the TTL and 60 seconds with these."""
    assert "RequestInterval=10,FailureThreshold=3" in PAGE.read_text()
