"""The actor of one zone, alone: what it asks clusters about keys that it knows by name, or that are in conflict; how often, and when."""

import pytest

from harness.sessions.zone_alone import LISTED, World, a_key, a_set, asked, record
from kubesync.domain.dns.records import RecordChange
from kubesync.domain.plan import Intent
from kubesync.messages import ConflictsChecked, Publish, Want
from kubesync.zone.waits import MOST_INTENTS


def test_keys_known_by_name_are_asked_for_and_thousands_that_wait_are_not_i7() -> None:
    world = World()
    keys = [world.prod.want(f"s{n:04d}", "10.0.0.1") for n in range(1500)]
    world.prod.publish_all(keys)
    world.pass_time(5)
    assert len(world.zone.ours) == 1500
    assert all(len(message.keys) <= 200 for message in world.prod.asked if isinstance(message, Want))
    assert len(asked(world.prod, Want)) <= 12


def test_keys_in_conflict_of_a_cluster_that_is_not_listed_are_asked_for_once_i7() -> None:
    world = World()
    keys = [world.prod.want(f"s{n:04d}", "10.0.0.1") for n in range(MOST_INTENTS + 600)]
    for key in keys:
        world.prod.conflicts[key] = frozenset({record(key.name).name})
        world.prod.attempts[key] = 3
    world.prod.publish_all(keys, frozenset())
    world.pass_time(300)
    assert (len(asked(world.prod, Want)), len(asked(world.prod, ConflictsChecked))) == (3, 0)
    world.actor.receive(Publish("prod", listed=LISTED))
    world.pass_time(5)
    assert len(asked(world.prod, ConflictsChecked)) == 8
    assert len(world.zone.ours) == 1600


def test_inherited_keys_in_conflict_are_asked_for_once_until_their_mark_says_i7(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("kubesync.zone.waits.MOST_INTENTS", 1)  # that of api
    world = World()
    world.prod.publish("api", "10.0.0.2")
    key = world.prod.want("web", "10.0.0.1")
    world.prod.conflicts[key], world.prod.attempts[key] = frozenset({record("web").name}), 4
    world.prod.retry_at[key] = world.clock.epoch_seconds() + 40
    world.prod.publish_all([key])
    world.pass_time(39)
    wanted = [message for message in world.prod.asked if isinstance(message, Want) and key in message.keys]
    assert (len(wanted), len(asked(world.prod, ConflictsChecked))) == (1, 0)
    world.pass_time(2)
    assert world.zone.ours == {"api": "10.0.0.2", "web": "10.0.0.1"}


def test_i4_cluster_that_does_not_answer_holds_up_no_other(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kubesync.zone.waits.MOST_INTENTS", 1)  # that of web
    world = World("prod", "test")
    test = world.clusters["test"]
    test.silent = True
    world.prod.publish("web", "10.0.0.1")
    test.publish("api", "10.0.0.2")
    world.pass_time(6)
    assert world.zone.ours == {"web": "10.0.0.1"}
    world.pass_time(30)
    assert len(asked(test, Want)) == 4
    test.silent = False
    world.pass_time(11)
    assert world.zone.ours == {"web": "10.0.0.1", "api": "10.0.0.2"}


def test_keys_of_a_cluster_that_is_not_here_are_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kubesync.zone.waits.MOST_INTENTS", 1)  # that of web
    world = World()
    world.prod.publish("web", "10.0.0.1")
    change = RecordChange(record("api"), None, a_set("10.0.0.2"))
    world.actor.receive(Publish("gone", (Intent(a_key("api", "gone"), (change,)),)))
    world.pass_time(10)
    assert world.zone.ours == {"web": "10.0.0.1"}


def test_hundreds_of_conflicts_are_checked_together_and_heal_i7() -> None:
    world = World()
    keys = [world.prod.want(f"s{n:04d}", "10.0.0.1") for n in range(900)]
    for key in keys[::3]:
        world.zone.sets[record(key.name)] = a_set("10.9.9.9")
    for n, key in enumerate(keys[::6]):
        world.prod.conflicts[key], world.prod.attempts[key] = frozenset({record(key.name).name}), n % 13
        world.prod.retry_at[key] = world.clock.epoch_seconds() + n % 50
    world.prod.publish_all(keys)
    world.pass_time(600)
    assert sum(address == "10.0.0.1" for address in world.zone.ours.values()) == 600
    assert len(asked(world.prod, Want)) < 250
    world.zone.sets = {key: found for key, found in world.zone.sets.items() if found != a_set("10.9.9.9")}
    world.pass_time(2 * 3600)
    assert len(world.zone.ours) == 900
    assert set(world.zone.ours.values()) == {"10.0.0.1"}
    assert world.end()
