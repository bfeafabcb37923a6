"""I1, I5: one release leaves what the other goes on with: Services that wait for their turn, and the guard's memory of deletions.

The release before may know neither turns nor the memory. Then the checkpoint says where to go on, and its next one drops the memory.
"""

from collections.abc import Iterator

import pytest

from harness.seen.raw_objects import put_raw, raw_service
from harness.waiting import wait_until
from kubesync_local.standins.apiserver.objects.resources import SERVICES, Target
from upgrade.deployment import Stage, a_stage, registration
from upgrade.release import Release

MANY = 400
LIVE = 40
KUBERNETES = "kubernetes.default.svc.prod.example.com A 30 10.68.0.1"


@pytest.fixture
def stage(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stage]:
    with a_stage(tmp_path_factory.mktemp("release-before")) as made:
        made.before.run_all([registration("prod", made.stack.api.url, made.stack.zone_id, "--no-srv")])
        made.session(made.before)
        yield made


def in_turn(stage: Stage, first: str) -> tuple[Release, Release]:
    return (stage.before, stage.now) if first == "before" else (stage.now, stage.before)


def lines(names: list[str], namespace: str = "shop") -> list[str]:
    return sorted([KUBERNETES, *(f"{name}.{namespace}.svc.prod.example.com A 30 10.68.9.9" for name in names)])


def zone(stage: Stage) -> list[str]:
    return sorted(stage.reader.zone(stage.stack.zone_id))


def no_difference(stage: Stage) -> None:
    for release in (stage.now, stage.before):
        (found,) = release.run("resync", "--dry-run")["clusters"]
        assert (found["changes"], found["drift"], found["conflicts"]) == ([], [], []), release.name


@pytest.mark.parametrize("first", ["before", "now"])
def test_i1_services_that_wait_for_their_turn_are_published_by_the_other_release(stage: Stage, first: str) -> None:
    killed, heir = in_turn(stage, first)
    names = [f"s{number:03}" for number in range(MANY)]

    def recorded() -> int:
        return sum("/key#shop/" in place or "key#shop/" in place for place in stage.reader.tables()["state"])

    with killed.start() as running:
        wait_until(lambda: running.is_master and stage.stack.settled(), said=running.said)
        for name in names:
            put_raw(stage.stack.api, raw_service(name, "shop"))
        wait_until(lambda: recorded() > 0, said=running.said)
        running.kill()
    assert 0 < recorded() < MANY, "some wait"
    stage.expire_lease()
    stage.session(heir, lambda _: zone(stage) == lines(names))
    no_difference(stage)


@pytest.mark.parametrize("first", ["before", "now"])
def test_i5_memory_of_the_guard_harms_no_other_release(stage: Stage, first: str) -> None:
    """A list takes 8 of 41 away. Whatever the other release makes of the memory, nothing else goes, and no checkpoint is unreadable."""
    one, other = in_turn(stage, first)
    names = [f"s{number:03}" for number in range(LIVE)]
    for name in names:
        put_raw(stage.stack.api, raw_service(name, "shop"))
    stage.session(one, lambda _: zone(stage) == lines(names))
    for name in names[:8]:
        stage.stack.api.writer.delete(Target(SERVICES, "shop", name), {})
    stage.stack.api.compact(stage.stack.api.store.revision)
    stage.session(one, lambda _: zone(stage) == lines(names[8:]))
    for release in (other, one):
        stage.session(release)
        assert zone(stage) == lines(names[8:])
        put_raw(stage.stack.api, raw_service(f"of-{release.name.replace(' ', '-')}", "shop"))
        names.append(f"of-{release.name.replace(' ', '-')}")
        stage.session(release, lambda _: zone(stage) == lines(names[8:]))
    no_difference(stage)
