"""The rest of the deployed package asks the registries of sources, and names no kind and no resource."""

import re
from pathlib import Path
from typing import Final

import pytest

import kubesync
import kubesync_local
import toy
from kubesync.aws.tables import items
from kubesync.domain.dns.routing.policies import POLICIES
from kubesync.domain.sources.registry import KINDS, SOURCES
from kubesync.kubernetes.wire.registry import WIRE

PACKAGE: Final = Path(kubesync.__file__).parent
NAMED: Final = re.compile(
    r"\bResource\.[A-Z]+\b|\bServiceKey\b|\"(services|endpoints|endpointslices)\"|\bisinstance\(.*\bService\b"
)
KNOWS_NONE: Final = (
    *("zone", "session", "operations", "actors", "upstreams", "telemetry", "bootstrap", "messages.py"),
    *(
        f"cluster/keys/{name}.py"
        for name in ("observations", "list_diff", "planner", "committer", "key_writes", "shared")
    ),
    *("cluster/run.py", "cluster/actor.py", "cluster/listener.py", "cluster/served_keys.py"),
    *(
        f"kubernetes/{name}.py"
        for name in ("transport/urls", "wire/event_scan", "wire/decode", "watch", "reflector", "lister")
    ),
    *("aws/tables/state.py", "aws/tables/state_codec.py", "aws/tables/control/listeners.py"),
)


@pytest.mark.parametrize("place", KNOWS_NONE)
def test_room_names_no_kind_and_no_resource(place: str) -> None:
    found = PACKAGE / place
    files = [found] if found.suffix else sorted(found.rglob("*.py"))
    assert files
    named = [
        f"{file.relative_to(PACKAGE)}:{number}: {line.strip()}"
        for file in files
        for number, line in enumerate(file.read_text().splitlines(), 1)
        if NAMED.search(line)
    ]
    assert named == []


def test_commands_name_ingresses_in_one_folder() -> None:
    """A further kind needs a file there, a line in its registry, and the rows of its options. The stand-in's API server is another subject."""
    folder = Path(kubesync_local.__file__).parent
    names = re.compile(
        r"sources\.ingresses|\bINGRESSES\b|isinstance\(.*\bIngress\b|ingress_class|ignore_ingress|\bIngresses\b"
    )
    found = {path.relative_to(folder) for path in folder.rglob("*.py") if names.search(path.read_text())}
    elsewhere = {path for path in found if path.parts[0] not in ("standins", "demo")}
    assert {str(path) for path in elsewhere} == {"sources/ingresses.py", "sources/options.py"}


def test_source_that_only_tests_know_is_one_file_of_models_and_one_of_rules() -> None:
    folder = Path(toy.__file__).parent
    assert sorted(path.name for path in folder.glob("*.py")) == ["__init__.py", "models.py", "rules.py"]
    assert {"toys", "boxes"} <= {*SOURCES} & {*WIRE}
    assert KINDS["Toy"].reads == ("Box",)
    mentions = [path for path in PACKAGE.rglob("*.py") if re.search(r"\btoys?\b", path.read_text(), re.IGNORECASE)]
    assert mentions == []


def test_each_further_form_has_a_schema_version_of_its_own() -> None:
    """A release leaves alone what has a version that it does not know. The first four versions have several forms each, and that stays so."""
    own = {
        **{name: number for name, number in vars(items).items() if name.startswith("SCHEMA_OF_")},
        **{kind.name: kind.schema for kind in KINDS.values()},
        **{policy.kind: policy.since for policy in POLICIES.values() if "since" in vars(policy)},
    }
    later = {name: number for name, number in own.items() if number > 4}
    assert POLICIES.keys() - own.keys() == {
        *("simple", "weighted", "latency", "failover", "geolocation", "geoproximity", "multivalue")
    }
    assert sorted(later.values()) == [*range(5, 5 + len(later))], f"each has one above all others: {later}"
