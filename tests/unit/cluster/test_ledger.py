"""What a session knows of a cluster without reading it twice."""

from __future__ import annotations

from harness.fakes.manual_clock import ManualClock
from harness.fakes.memory_store import MemoryStore
from harness.seen.builders import a_key
from harness.seen.recording import ENDPOINTS, SERVICES, SLICES, a_config
from kubesync.aws.tables.control.clusters import ZoneReference
from kubesync.aws.tables.control.listeners import Basis, Checkpoint
from kubesync.aws.tables.state import StateTable
from kubesync.cluster.keys import key_states as module
from kubesync.cluster.keys.key_states import RULES_VERSION, Ledger, rules_of
from kubesync.domain.dns.desired import DnsRules
from kubesync.domain.dns.records import Zone
from kubesync.domain.state import KeyState, Part, PartId

BASIS = Basis(1, "https://prod.test:6443", RULES_VERSION)
TOMBSTONE = {PartId(SERVICES, "web"): Part("u", 5, 1, None, deleted=True)}


def a_ledger() -> tuple[MemoryStore, Ledger]:
    store = MemoryStore(clock=ManualClock())
    return store, Ledger(a_config(), StateTable(store), ManualClock())


def test_key_is_read_once_i7() -> None:
    store, ledger = a_ledger()
    assert ledger.states([a_key()]) == {a_key(): KeyState(a_key())}
    store.calls.clear()
    ledger.states([a_key()])
    assert store.calls == []
    ledger.forget([a_key()])
    ledger.states([a_key()])
    assert len(store.calls) == 1


def test_memory_is_bounded_and_more_keys_than_that_are_still_served() -> None:
    _, ledger = a_ledger()
    keys = [a_key(f"s{n}") for n in range(module.CACHED_KEYS + 10)]
    assert ledger.states(keys).keys() == set(keys)
    assert len(ledger._states) == 4000


def test_keys_with_tombstones_are_noted_until_they_are_swept() -> None:
    _, ledger = a_ledger()
    ledger.remember(KeyState(a_key(), parts=TOMBSTONE))
    assert list(ledger.tombstoned) == [a_key()]
    ledger.remember(KeyState(a_key()))
    assert not ledger.tombstoned


def test_checkpoints_are_taken_over_but_a_view_is_not_whole_by_itself_i5() -> None:
    _, ledger = a_ledger()
    ledger.configure(a_config(), {SERVICES: Checkpoint(7, 3, BASIS, 9)})
    services, slices = ledger.listeners[SERVICES], ledger.listeners[SLICES]
    assert (services.generation, services.seen_version, services.whole) == (3, 7, False)
    assert (slices.checkpoint, slices.generation, slices.whole) == (None, 0, False)
    assert ledger.generations() == {SERVICES: 3, SLICES: 1}
    assert ledger.floors() == {SERVICES: (3, 7)}
    assert ledger.basis == BASIS


def test_listeners_are_those_of_the_configuration() -> None:
    _, ledger = a_ledger()
    assert list(ledger.listeners) == [SERVICES, SLICES]
    ledger.configure(a_config(endpoints_source=ENDPOINTS), {})
    assert list(ledger.listeners) == [SERVICES, ENDPOINTS]


def test_rules_are_those_of_the_configuration() -> None:
    config = a_config(
        zones=(ZoneReference(id="Z1", name="example.com"), ZoneReference(id="Z2", name="example.com", private=True)),
        srv=False,
        load_balancer_alias=True,
        load_balancer_cluster_ips=True,
        template="{service}.{domain}",
    )
    assert rules_of(config) == DnsRules(
        cluster="prod",
        domain="prod.example.com",
        zones=(Zone("Z1", "example.com"), Zone("Z2", "example.com", private=True)),
        template="{service}.{domain}",
        default_ttl=60,
        srv=False,
        load_balancer_cluster_ips=True,
        load_balancer_alias=True,
    )
