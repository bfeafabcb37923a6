"""What the chaos run watches while sessions go on: each watch says so where something is wrong."""

from chaos.faults.crash import undisturbed
from chaos.faults.situations import Staging
from chaos.stories.named_watch import NamedWatch
from chaos.stories.situations import AtCall, Keep, Tale
from harness.seen.builders import a_service, an_endpoints
from harness.seen.named import named_item
from kubesync.aws.dynamodb.store import UPSTREAMS, Key, Update
from kubesync.domain.objects import Resource
from sequences.outside import INNER
from sequences.steps import Delete, Kill, Put
from simulation.gate import Gate, Outward
from simulation.writes import COMPOSED, SWAPPED

SEED = 20261120
_WEB = Put("prod", "shop", "web", a_service())


def lines_of(tale: Tale) -> list[str]:
    staging = Staging("test")
    staging.tell(tale)
    return staging.lines


def test_named_upstream_that_is_written_as_it_was_is_told() -> None:
    world = undisturbed(SEED).end.copy().world
    watch, gate = NamedWatch(world), Gate("a session")
    watch.beside(lambda _gate: None)(gate)
    before = named_item(world.store, "everywhere")
    assert before is not None
    version = Update(Key(UPSTREAMS, before.upstream, 0), set={"version": before.version + 1})
    world.store.transact([version], "the same nodes once more")
    gate.on_after(Outward(1, "dynamodb", "transact", writes=True, kind=COMPOSED))
    assert [line.partition(": ")[2] for line in watch.lines] == [
        f"dynamodb transact: named/everywhere has version {before.version + 1}, and holds what it held before"
    ]


def test_situation_whose_call_is_never_made_is_told() -> None:
    swapped = AtCall((SWAPPED, INNER.id), (Kill(0),))
    assert lines_of(((0.0, _WEB), (4.0, swapped))) == [
        f"the situation does not come about: ('{SWAPPED}', '{INNER.id}')"
    ]


def test_i5_what_goes_while_everything_has_to_stand_is_told() -> None:
    pods = Put("prod", "shop", "web", an_endpoints("10.1.0.1"), "web-a")
    gone = Delete("prod", Resource.SERVICES, "shop", "web")
    told = lines_of(((0.0, _WEB), (0.0, pods), (4.0, Keep(standing=True)), (0.0, gone)))
    assert any("web.shop.svc.prod.example.com" in line and "is gone" in line for line in told)
    assert any("prod/shop/web/80/TCP is gone" in line for line in told)
