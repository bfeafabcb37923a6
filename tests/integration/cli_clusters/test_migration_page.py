"""docs/migration.md played whole, steps 1 to 6: the test runs the page's own commands, beside a double of external-dns.

No name is away for a moment: after every batch that anybody sends, all names that clients use are there. At the end each record set
has exactly one owner.
"""

import base64
import json
import re
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest

from harness.cli_stack import TOKEN, CliStack, Ran, a_cli_stack
from harness.fakes.external_dns import ExternalDns, RegistryForm
from harness.stack import a_boto_session
from kubesync.aws.route53.client import build_route53_client
from kubesync_local.standins.apiserver.workloads.client import ApiClient

PAGE: Final = Path(__file__).resolve().parents[3] / "docs/migration.md"
ELB: Final = "a1b2c3-123456789.eu-west-1.elb.amazonaws.com"
FORMS: Final = {
    "0.11: old": RegistryForm(old=True, new=False),
    "0.16: both": RegistryForm(old=True, alias_as_cname=True),
    "0.18: new": RegistryForm(),
    "both, prefix": RegistryForm(old=True, prefix="reg-"),
    "new, typed prefix": RegistryForm(prefix="%{record_type}-x."),
    "new, typed suffix": RegistryForm(suffix="-%{record_type}"),
}
MOVED: Final = {
    ("www.example.com", "A", ""), ("www.example.com", "AAAA", ""), ("ip.example.com", "A", ""),
    ("cn.example.com", "CNAME", ""), ("short.example.com", "A", ""), ("shared.example.com", "A", "prod"),
    ("ext.example.com", "A", ""), ("plain.example.com", "A", ""),
}  # fmt: skip
KEPT: Final = {
    ("kafka.example.com", "A", ""), ("kafka-0.kafka.example.com", "A", ""), ("kafka-1.kafka.example.com", "A", ""),
    ("nodes.example.com", "A", ""), ("front.example.com", "A", ""),
}  # fmt: skip
OTHERS: Final = {
    ("shared.example.com", "A", "elsewhere"),
    ("legacy.example.com", "A", ""),
    ("mail.example.com", "MX", ""),
}
FIRST: Final = ("kubesync-first.example.com", "A", "")


class Player:
    """A person with the page, the commands on it, and an eye on the zone."""

    def __init__(self, stack: CliStack, form: RegistryForm, folder: Path) -> None:
        self.stack, self.form, self._folder = stack, form, folder
        self._route53: Any = build_route53_client(a_boto_session(), stack.route53.url)
        api = ApiClient(stack.api.url, TOKEN)
        self.external_dns = ExternalDns(api, self._route53, stack.zone_id, form)
        self.external_dns.ingresses["front.example.com"] = ("203.0.113.20", {})
        self.ran: list[Ran] = []
        self.more_options: list[str] = []  # of ``cluster add``
        self._seen, self._names = 0, set[tuple[str, str, str]]()

    # -- the page ------------------------------------------------------------------------------------------------

    def play(self, step: int) -> list[Ran]:
        """Run every command of a step, in the page's order. Returns how kubesync's own ended."""
        text = PAGE.read_text()
        (section,) = re.findall(rf"^## {step}\. .*?(?=^## )", text, re.MULTILINE | re.DOTALL)
        lines = re.sub(r"\\\n\s*", " ", section).splitlines()
        self.ran = []
        for command in [line.strip() for line in lines if line.startswith("    ")]:
            self.run(shlex.split(command, comments=True))
            self.external_dns.sync()
        return self.ran

    def run(self, words: list[str]) -> None:
        match words:
            case ["export", _]:
                return
            case ["kubesync", "session", *_]:
                assert self.stack.session().json["clean"]
            case ["kubesync", *rest]:
                self.ran.append(self.kubesync(rest))
            case ["kubectl", *rest]:
                self.kubectl(rest)
            case ["aws", "route53", "change-resource-record-sets", "--hosted-zone-id", zone, "--change-batch", file]:
                batch = json.loads((self._folder / self._own(file.removeprefix("file://"))).read_text())
                self._route53.change_resource_record_sets(HostedZoneId=self._own(zone), ChangeBatch=batch)
            case _:
                raise AssertionError(f"the page has a command that nobody plays: {words}")

    def _own(self, word: str) -> str:
        return word.replace("Z0123456789ABCDEFGHIJ", self.stack.zone_id)

    def kubesync(self, words: list[str]) -> Ran:
        server = ["--server", self.stack.api.url, "--token", "env:KUBESYNC_TEST_TOKEN"]
        if "--eks" in words:
            at = words.index("--eks")
            words = [*words[:at], *server, *words[at + 2 :]]
        if words[:2] == ["cluster", "add"]:
            words = [*words, *self.more_options]
        if words[0] == "recover":
            words = [*words, *self.form.options]
        if "--registry-changes" in words:
            words = [str(self._folder / word) if word == "registry" else word for word in words]
        ran = self.stack.call(*map(self._own, words))
        assert ran.status == 0, (words, ran.out, ran.err)
        return ran

    def kubectl(self, words: list[str]) -> None:
        cluster, namespace = self.stack.api.cluster, "default"
        if words[0] == "-n":
            namespace, words = words[1], words[2:]
        match words:
            case ["create", "service", "clusterip", name, "--tcp", port]:
                cluster.expose(namespace, name, {"ports": [{"port": int(port)}]})
            case ["annotate" | "label" as verb, "service", name, pair]:
                key, _, value = pair.partition("=")
                where = "annotations" if verb == "annotate" else "labels"
                cluster.change_service(namespace, name, {"metadata": {where: {key: value}}})
            case ["label", "ingress", "front", pair]:
                key, _, value = pair.partition("=")
                self.external_dns.ingresses["front.example.com"][1][key] = value
            case ["scale", "deployment", "external-dns", "--replicas", number]:
                self.external_dns.replicas = int(number)
            case _:
                raise AssertionError(f"the page has a kubectl command that nobody plays: {words}")

    def recovered(self, *options: str) -> dict[str, Any]:
        found: dict[str, Any] = self.kubesync(["recover", "--output", "json", *options]).json
        return found

    # -- the zone ------------------------------------------------------------------------------------------------

    def names_at_every_change(self) -> Iterator[set[tuple[str, str, str]]]:
        """The sets that clients can use, after each batch since the last call."""
        batches = self.stack.route53.batches(self.stack.zone_id)
        for call in batches[self._seen :]:
            if not call.accepted:
                continue
            for change in call.changes:
                key = change.record_set.key
                one = key.name.rstrip("."), key.type, key.identifier
                if change.action == "DELETE":
                    self._names.discard(one)
                else:
                    self._names.add(one)
            yield {each for each in self._names if each[1] != "TXT"}
        self._seen = len(batches)

    def standing(self) -> dict[tuple[str, str, str], dict[str, Any]]:
        """Without kubesync's journal and its names in ``default``."""
        found = self.external_dns.standing()
        return {
            key: each for key, each in found.items() if "_kubesync-" not in key[0] and "kubesync-first" not in key[0]
        }

    def held(self) -> set[tuple[str, str, str]]:
        rows = self.stack.call("records", "--output", "json").json
        return {(row["name"], row["type"], row.get("identifier", "")) for row in rows if row["state"] == "applied"}


def service(
    stack: CliStack, name: str, spec: dict[str, Any], ingress: dict[str, str] | None = None, **asks: str
) -> None:
    annotations = {f"external-dns.alpha.kubernetes.io/{key.replace('_', '-')}": text for key, text in asks.items()}
    stack.api.cluster.expose("shop", name, {"ports": [{"port": 80}], **spec}, annotations=annotations)
    if ingress is not None:
        stack.api.cluster.set_load_balancer("shop", name, [ingress])


def a_namespace(stack: CliStack) -> None:
    """Services of every case that the page names."""
    balancer = {"type": "LoadBalancer"}
    service(stack, "web", balancer, {"hostname": ELB}, hostname="www.example.com")
    service(stack, "ip", balancer, {"ip": "203.0.113.10"}, hostname="ip.example.com")
    service(stack, "cn", {}, hostname="cn.example.com", target="other.example.org")
    service(stack, "short", balancer, {"ip": "203.0.113.11"}, hostname="short.example.com", ttl="60")
    shared = {"hostname": "shared.example.com", "set_identifier": "prod", "aws_weight": "90"}
    service(stack, "shared", balancer, {"ip": "203.0.113.12"}, **shared)
    service(stack, "pending", {**balancer, "externalIPs": ["203.0.113.40"]}, hostname="ext.example.com")
    service(stack, "plain", {"clusterIP": "10.68.0.77"})
    service(stack, "nodes", {"type": "NodePort"}, hostname="nodes.example.com")
    service(stack, "kafka", {"clusterIP": "None", "selector": {"app": "kafka"}}, hostname="kafka.example.com")
    stack.api.cluster.stateful_set("shop", "kafka", 2, service="kafka")


def by_others(player: Player) -> None:
    """What people, and the external-dns of another cluster, have in the zone."""
    other = '"heritage=external-dns,external-dns/owner=other,external-dns/resource=service/old/legacy"'
    txt = player.form.names("legacy.example.com", "A", alias=False)[0]
    sets = [
        ("mail.example.com", "MX", "10 mx.example.org.", {}), ("legacy.example.com", "A", "198.51.100.7", {}),
        (txt, "TXT", other, {}), ("shared.example.com", "A", "198.51.100.1", {"SetIdentifier": "elsewhere", "Weight": 10}),
    ]  # fmt: skip
    changes = [
        {"Name": name, "Type": kind, "TTL": 300, "ResourceRecords": [{"Value": value}], **more}
        for name, kind, value, more in sets
    ]
    batch = {"Changes": [{"Action": "CREATE", "ResourceRecordSet": each} for each in changes]}
    player._route53.change_resource_record_sets(HostedZoneId=player.stack.zone_id, ChangeBatch=batch)


# `make test` tries these; `make thorough` the others too.
OFTEN = {"0.11: old", "0.18: new", "both, prefix"}


@pytest.fixture(
    params=[
        pytest.param(form, id=name, marks=() if name in OFTEN else pytest.mark.thorough) for name, form in FORMS.items()
    ]
)
def player(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Player]:
    with a_cli_stack(in_memory=True) as stack:
        stack.make_tables()
        a_namespace(stack)
        made = Player(stack, request.param, tmp_path)
        by_others(made)
        made.external_dns.sync()
        assert made.external_dns.sync() == [], "the double is at rest"
        list(made.names_at_every_change())
        yield made


WHY: Final = {
    "kafka-0.kafka.example.com": ("service/shop/kafka", "a pod name below `hostname` of a headless Service"),
    "kafka-1.kafka.example.com": ("service/shop/kafka", "a pod name below `hostname` of a headless Service"),
    "ext.example.com": (
        "service/shop/pending", "its load balancer has no address; external-dns takes spec.externalIPs"
    ),
    "plain.example.com": (
        "service/shop/plain", "cluster IPs (--publish-internal-services) at a name that no annotation asks for"
    ),
    "front.example.com": ("ingress/shop/front", "made of ingress shop/front: the cluster's --sources leave Ingresses out"),
    "legacy.example.com": ("service/old/legacy", "no Service of this cluster asks for it"),
}  # fmt: skip


def test_i3_page_moves_every_name_and_none_is_away_or_without_an_owner(player: Player) -> None:
    moves_every_name(player, MOVED, WHY)


@pytest.mark.parametrize("player", [RegistryForm(), RegistryForm(old=True, prefix="reg-")], indirect=True)
def test_i3_names_of_ingresses_move_with_those_of_services(player: Player) -> None:
    cluster, moved = player.stack.api.cluster, {"store": "203.0.113.21", "alb": ELB}
    left_out = {"kubesync.io/exclude": "true"}
    for name, address in {**moved, "front": "203.0.113.20"}.items():
        host = f"{name}.example.com"
        spec = {"rules": [{"host": host}], "tls": [{"hosts": [host]}]}
        cluster.expose_ingress("shop", name, spec, annotations=left_out if name == "front" else None)
        cluster.set_ingress("shop", name, [{"hostname" if address == ELB else "ip": address}])
        player.external_dns.ingresses[host] = (address, {})
    player.external_dns.sync()
    list(player.names_at_every_change())
    player.more_options = ["--sources", "service,ingress"]
    found = {("store.example.com", "A", ""), ("alb.example.com", "A", ""), ("alb.example.com", "AAAA", "")}
    why = {**WHY, "front.example.com": ("ingress/shop/front", "kubesync.io/exclude leaves the Ingress out")}
    moves_every_name(player, MOVED | found, why)
    cluster.set_ingress("shop", "store", [{"ip": "203.0.113.98"}])
    assert player.stack.session().json["clean"]
    assert player.stack.zone_records()["store.example.com A"] == ["203.0.113.98"]


def moves_every_name(player: Player, moved: set[tuple[str, str, str]], why: dict[str, tuple[str, str]]) -> None:
    """Play the page. ``why``: of each name that external-dns has and kubesync does not want at first."""
    stack, used = player.stack, moved | KEPT | OTHERS
    player.play(1)
    assert stack.session(lambda: "kubesync-first.example.com A" in stack.zone_records() and stack.settled()).json[
        "clean"
    ]
    before = player.standing()
    assert used <= before.keys()

    # Step 2 as far as its first look: what external-dns keeps is known before anything is switched off.
    dry = player.recovered()
    assert {row["name"]: (row["resource"], row["why"]) for row in dry["registered"]} == why
    assert {row["owner"] for row in dry["registered"]} == {"default", "other"}
    (cluster,) = dry["clusters"]
    assert [(row["name"], row["differs"]) for row in cluster["differing"]] == [("nodes.example.com", ["values"])]
    assert [each["unmatched"] for each in dry["registries"]] == [0]
    player.play(2)
    decided = player.recovered()
    (cluster,) = decided["clusters"]
    claimed = {(row["name"], row["type"], row.get("identifier", "")) for row in cluster["claimed"]}
    assert (claimed, cluster["unproven"], cluster["differing"]) == (moved, [], [])
    rows = decided["registered"]
    assert {(row["name"], row["type"], "") for row in rows} == KEPT | {("legacy.example.com", "A", "")}
    assert player.standing() == before, "to decide changes no record set"

    player.play(3)
    assert player.held() == moved | {FIRST}
    assert player.standing() == before, "to take over changes no record set"
    player.play(4)
    assert player.standing() == before

    player.play(5)
    after = player.standing()
    assert {key: each for key, each in before.items() if key[1] != "TXT"} == {
        key: each for key, each in after.items() if key[1] != "TXT"
    }
    assert player.external_dns.owned() == KEPT, "external-dns owns what stays, and nothing else"
    player.external_dns.label_filter = True
    player.play(6)
    assert player.standing() == after, "the external-dns that goes on changes nothing"

    owners = [player.held() - {FIRST}, player.external_dns.owned(), OTHERS]
    assert sum(map(len, owners)) == len(set().union(*owners)), "two owners"
    assert set().union(*owners) == {key for key in after if key[1] != "TXT"}, "without an owner"
    assert all(used <= names for names in player.names_at_every_change()), "a name was away"

    # Each follows its owner from now on.
    stack.api.cluster.set_load_balancer("shop", "ip", [{"ip": "203.0.113.99"}])
    stack.api.cluster.delete_service("shop", "short")
    stack.api.cluster.scale("shop", "kafka", 1)
    assert stack.session().json["clean"]
    player.external_dns.sync()
    names = {key for key in player.standing() if key[1] != "TXT"}
    assert used - names == {("short.example.com", "A", ""), ("kafka-1.kafka.example.com", "A", "")}
    assert stack.zone_records()["ip.example.com A"] == ["203.0.113.99"]


@pytest.mark.parametrize("player", [RegistryForm()], indirect=True)
def test_registry_that_still_names_what_moved_takes_it_away(player: Player) -> None:
    """Step 5 is needed, and the watch on the zone sees what goes without it."""
    for step in (1, 2, 3, 4):
        player.play(step)
    player.external_dns.label_filter = True
    player.play(6)
    assert not all(names >= MOVED for names in player.names_at_every_change())


@pytest.mark.parametrize("player", [RegistryForm(prefix="reg-")], indirect=True)
def test_options_that_are_not_those_of_external_dns_are_told(player: Player) -> None:
    player.play(1)
    player.form = RegistryForm()
    found = player.kubesync(["recover"])
    registered = len(player.external_dns.owned()) + 1
    (line,) = [line for line in found.lines if line.startswith("zone ")]
    assert line == (
        f"zone example.com ({player.stack.zone_id}): TXT records of external-dns that fit no record set: {registered}; "
        "give --txt-prefix and the like as in external-dns"
    )
    assert player.recovered()["registered"] == []


@pytest.mark.parametrize("player", [RegistryForm()], indirect=True)
def test_encrypted_registry_is_said_to_be_unreadable_and_nothing_is_concluded(player: Player) -> None:
    player.play(1)
    changes = []
    for (_, kind, _), each in player.external_dns.standing().items():
        if kind == "TXT" and "heritage=external-dns" in each["ResourceRecords"][0]["Value"]:
            secret = base64.b64encode(bytes(range(130))).decode()
            changes += [{"Action": "DELETE", "ResourceRecordSet": each}]
            hidden = {**each, "ResourceRecords": [{"Value": f'"{secret}"'}]}
            changes += [{"Action": "CREATE", "ResourceRecordSet": hidden}]
    player._route53.change_resource_record_sets(HostedZoneId=player.stack.zone_id, ChangeBatch={"Changes": changes})
    ran = player.kubesync(["recover"])
    (line,) = [line for line in ran.lines if line.startswith("zone ")]
    assert line == (
        f"zone example.com ({player.stack.zone_id}): external-dns' registry is encrypted and unreadable "
        f"(TXT records: {len(changes) // 2}): nothing is concluded from it"
    )
    found = player.recovered()
    assert (found["registered"], found["registry_records"]) == ([], [])
    folder = ["--registry-changes", "registry"]
    assert "no file was written" in player.kubesync(["recover", *folder]).err
