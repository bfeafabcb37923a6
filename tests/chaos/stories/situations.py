"""Situations that chance seldom brings about, each told as a course: what has to meet does so at a certain call.

Each takes one mechanism to survive. ``AtCall`` waits for the call; a situation whose call is never made is a violation by itself.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final

from chaos.faults.struck import LATER, UNREACHED
from chaos.stories.happenings import Happening, Land, Storm
from harness.seen.builders import a_service, an_endpoint, an_endpoints
from kubesync.domain.objects import Port, Resource
from sequences.notation import Written
from sequences.outside import INNER, PUBLIC
from sequences.steps import Compose, Configure, Delete, End, Kill, Put, Register
from simulation.scope_view import TEAM
from simulation.writes import COMPOSED, RECORD, SENT


@dataclass(frozen=True, slots=True, repr=False)
class AtCall(Written):
    """At the ``nth`` call from now whose kind or text holds these words, ``happenings`` happen; then the call takes ``seconds``."""

    words: tuple[str, ...]
    happenings: tuple[Told, ...]
    nth: int = 1
    before: bool = True
    seconds: float = 0.0


@dataclass(frozen=True, slots=True, repr=False)
class Lost(Written):
    """In an ``AtCall``, as the last: the call gets no answer; ``outcome``: what becomes of it."""

    outcome: str


@dataclass(frozen=True, slots=True, repr=False)
class Hold(Written):
    """Route 53 answers so many changes more; None: all."""

    changes: int | None


@dataclass(frozen=True, slots=True, repr=False)
class Forget(Written):
    """Somebody deletes a cluster's registration by hand."""

    cluster: str


@dataclass(frozen=True, slots=True, repr=False)
class Stranger(Written):
    """Somebody else makes an A record set at a name, or takes it away again."""

    zone: str
    name: str
    stands: bool


@dataclass(frozen=True, slots=True, repr=False)
class OtherOwner(Written):
    """The journal of a zone becomes another deployment's; with ``stands`` False it goes, and must not have been touched."""

    zone: str
    stands: bool


@dataclass(frozen=True, slots=True, repr=False)
class Allow(Written):
    """From now on IAM lets sessions change only names like these; None: any."""

    names: tuple[str, ...] | None


@dataclass(frozen=True, slots=True, repr=False)
class Read(Written):
    """Only these listeners read, such as ``prod services``; None: all."""

    labels: tuple[str, ...] | None


@dataclass(frozen=True, slots=True, repr=False)
class Answers(Written):
    """Who answers at a cluster's address, when it is listed again: ``itself``, ``itself, empty``, or ``another``."""

    cluster: str
    who: str


@dataclass(frozen=True, slots=True, repr=False)
class Keep(Written):
    """From now on (or no longer) whatever stands now must go on standing: its absence is not proven (I5)."""

    standing: bool


type Told = Happening | AtCall | Lost | Hold | Forget | Stranger | OtherOwner | Allow | Read | Answers | Keep | Register
type Tale = tuple[tuple[float, Told], ...]
"""As a Course, with what only situations have."""

_ONE_TEAM: Final = {TEAM: "a"}


def _web(cluster: str, address: int, **annotations: str) -> Put:
    return Put(cluster, "shop", "web", a_service(cluster_ips=(f"10.0.0.{address}",), annotations=annotations))


def _pods(cluster: str, *addresses: int, slice_name: str = "web-a") -> Put:
    pods = [an_endpoint(f"10.1.0.{number}", hostname=f"web-{number}", pod=f"web-{number}") for number in addresses]
    return Put(cluster, "shop", "web", an_endpoints(*pods), slice_name)


def _many(count: int) -> list[Put]:
    return [Put("prod", "web", f"m{n}", a_service(cluster_ips=(f"10.0.9.{n}",))) for n in range(count)]


def _forgotten_with_its_batch(_number: int) -> Tale:
    """A registration goes while a batch of its cluster is under way; the batch lands, the cluster is registered again."""
    api = Put("prod", "shop", "api", a_service(cluster_ips=("10.0.0.7",)))
    return (
        (0.0, _web("prod", 1)),
        (4.0, Hold(0)),
        (0.0, api),
        (2.5, Forget("prod")),
        (4.0, Hold(None)),
        (4.0, Register("prod")),
        (6.0, Delete("prod", Resource.SERVICES, "shop", "api")),
    )


def _hand_over_in_doubt(_number: int) -> Tale:
    """A session hands over while a batch has no answer. The batch lands before the next session looks."""
    in_doubt = AtCall((SENT, INNER.id), (Storm("route53", 3600.0, 1.0), Lost(LATER)))
    return (
        (0.0, _web("edge", 1)),
        (4.0, in_doubt),
        (0.0, Put("edge", "shop", "api", a_service(cluster_ips=("10.0.0.7",)))),
        (2.0, End()),
        (0.0, Storm("route53", 0.0, 0.0)),
        (0.0, Land()),
    )


def _refused_while_in_doubt(_number: int) -> Tale:
    """A batch has no answer, its repetition is refused for a stranger's set; the set goes, and the first try arrives.

    One name alone: whatever else the batch holds would go with another batch, which shuts the first try out.
    """
    name, port = "web.shop.svc.prod.example.com", Port("", "TCP", 80)
    doubt = AtCall((SENT, PUBLIC.id), (Stranger(PUBLIC.id, name, stands=True), Lost(LATER)))
    return (
        (4.0, doubt),
        (0.0, Put("prod", "shop", "web", a_service(ports=(port,)))),
        (4.0, Stranger(PUBLIC.id, name, stands=False)),
        (0.0, Land()),
    )


def _late_batch_after_a_death(_number: int) -> Tale:
    """A session dies with its batch on the way; it arrives right before the first batch of the next session."""
    late = AtCall((SENT, PUBLIC.id), (Land(),))
    dies = AtCall((SENT, PUBLIC.id), (late, Kill(1), Lost(LATER)))
    return (
        (0.0, _web("prod", 1)),
        (4.0, dies),
        (0.0, Put("prod", "shop", "api", a_service(cluster_ips=("10.0.0.7",)))),
        (8.0, _web("prod", 2)),
    )


def _death_between_closings(number: int) -> Tale:
    """Two clusters have keys in one batch; the session dies once one of them has closed its keys, or at another call of these."""
    one_has_closed = AtCall(("audit+control+state ",), (Kill(0),), before=False)
    death = Kill(1 + number // 2 % 4) if number % 2 else one_has_closed
    dies = AtCall((SENT, PUBLIC.id), (death,), nth=2, before=False)
    return (
        (0.0, _web("edge", 1)),
        (4.0, Hold(0)),
        (0.0, _web("prod", 1)),
        (1.5, Put("prod", "shop", "api", a_service(cluster_ips=("10.0.0.7",)))),
        (0.0, _web("edge", 1, hostname="b.example.com")),
        (1.5, dies),
        (0.0, Hold(None)),
    )


def _journal_of_another(_number: int) -> Tale:
    """Another deployment uses our journal's name: nothing is written to that zone until it is gone."""
    return (
        (0.0, _web("edge", 1)),
        (4.0, OtherOwner(INNER.id, stands=True)),
        (0.0, _web("edge", 2)),
        (8.0, OtherOwner(INNER.id, stands=False)),
    )


def _names_denied(number: int) -> Tale:
    """IAM denies names from a batch on that has no answer and arrives late. The session dies at a call of what follows."""
    deny = AtCall((SENT, PUBLIC.id), (Allow(("_kubesync-*", "*.team.svc.prod.example.com")), Lost(LATER)))
    return (
        (0.0, _web("prod", 1)),
        (4.0, deny),
        (0.0, _web("prod", 2)),
        (0.0, Put("prod", "team", "web", a_service(cluster_ips=("10.0.0.8",)))),
        (0.0, Kill(5 + number)),
        (6.0, Land()),
        (0.0, Delete("prod", Resource.SERVICES, "shop", "web")),
        (20.0, Allow(None)),
    )


def _nothing_allowed(number: int) -> Tale:
    """IAM denies everything for a while, and the session dies meanwhile."""
    return (
        (0.0, _web("prod", 1)),
        (4.0, Allow(())),
        (0.0, _web("prod", 2)),
        (3.0, Kill(1 + number % 3)),
        (0.0, Put("prod", "shop", "api", a_service(cluster_ips=("10.0.0.7",)))),
        (20.0, Allow(None)),
    )


def _selector_there_and_back(_number: int) -> Tale:
    """A selector leaves out all Services. The session dies once some of them are recorded, and the selector is taken back.

    A deletion is remembered as long as the checkpoint is older than its list. So the list is newer than what was read before, and
    takes several transactions.
    """
    return (
        *((0.0, each) for each in _many(40)),
        (5.0, Read(())),
        (0.0, _web("prod", 1)),
        (0.0, Configure("prod", (("selector", "team=nobody"),))),
        (3.0, AtCall((RECORD, "cluster#prod/"), (Kill(0),), before=False)),
        (0.0, Read(None)),
        (8.0, Configure("prod", (("selector", ""),))),
    )


def _endpoints_not_listed_yet(_number: int) -> Tale:
    """A cluster's endpoints come from another source from now on, which is listed long after the Services."""
    headless = Put("edge", "shop", "web", a_service(headless=True))
    return (
        (0.0, headless),
        (0.0, _pods("edge", 1, 2, slice_name="")),
        (0.0, _pods("edge", 1, 2)),
        (4.0, Keep(standing=True)),
        (0.0, Read(("prod services", "prod endpoints", "edge services"))),
        (0.0, Configure("edge", (("endpoints_source", Resource.ENDPOINTSLICES),))),
        (10.0, Read(None)),
        (6.0, Keep(standing=False)),
    )


def _referred_to_while_recorded(_number: int) -> Tale:
    """A Service is referred to for the first time between the planning of its pods and their recording."""
    named = Compose("outer", (("prod/shop/web/80", 1, False),))
    return (
        (0.0, _web("prod", 1)),
        (0.0, _pods("prod", 1)),
        (4.0, AtCall((RECORD, "cluster#prod/"), (named,), seconds=4.0)),
        (0.0, _pods("prod", 1, 2)),
    )


def _changed_while_composed(_number: int) -> Tale:
    """Pods change again, and are recorded, between the composing of their named upstream and its recording."""
    return (
        (0.0, _web("prod", 1)),
        (0.0, _pods("prod", 1)),
        (0.0, Compose("outer", (("prod/shop/web/80", 1, False),))),
        (6.0, AtCall((COMPOSED,), (_pods("prod", 1, 2, 3),), seconds=4.0)),
        (0.0, _pods("prod", 1, 2)),
    )


def _record_denied(_number: int) -> Tale:
    """The transaction that records a change of pods is denied once."""
    return (
        (0.0, _web("prod", 1)),
        (0.0, _pods("prod", 1)),
        (4.0, AtCall((RECORD, "cluster#prod/"), (Lost(UNREACHED),))),
        (0.0, _pods("prod", 1, 2)),
    )


def _death_within_a_window(_number: int) -> Tale:
    """A window takes several transactions; the session dies after the first."""
    return (
        (0.0, _web("prod", 1)),
        (4.0, AtCall((RECORD, "cluster#prod/"), (Kill(0),), before=False)),
        *((0.0, each) for each in _many(40)),
    )


def _other_cluster(selector: str) -> Callable[[int], Tale]:
    def tale(_number: int) -> Tale:
        """Another cluster answers for a while; with a selector no list shows which one it is."""
        web = Put("prod", "shop", "web", a_service(annotations=_ONE_TEAM))
        return (
            (0.0, Configure("prod", (("selector", selector),))),
            (0.0, web),
            (5.0, Keep(standing=True)),
            (0.0, Answers("prod", "another")),
            (6.0, Answers("prod", "itself")),
            (6.0, Keep(standing=False)),
        )

    return tale


def _most_are_missing(_number: int) -> Tale:
    """The right cluster answers with an almost empty list for a while."""
    return (
        *((0.0, each) for each in _many(12)),
        (5.0, Keep(standing=True)),
        (0.0, Answers("prod", "itself, empty")),
        (6.0, Answers("prod", "itself")),
        (6.0, Keep(standing=False)),
    )


SITUATIONS: Final[Mapping[str, Callable[[int], Tale]]] = {
    "a cluster is forgotten with its batch under way": _forgotten_with_its_batch,
    "a hand-over with a batch in doubt": _hand_over_in_doubt,
    "a batch in doubt is refused": _refused_while_in_doubt,
    "a batch is late after a death": _late_batch_after_a_death,
    "a death between two clusters' closings": _death_between_closings,
    "a journal of another deployment": _journal_of_another,
    "names are denied": _names_denied,
    "everything is denied": _nothing_allowed,
    "a selector there and back": _selector_there_and_back,
    "endpoints are listed late": _endpoints_not_listed_yet,
    "referred to while it is recorded": _referred_to_while_recorded,
    "changed while it is composed": _changed_while_composed,
    "a record is denied": _record_denied,
    "a death within a window": _death_within_a_window,
    "another cluster answers": _other_cluster(""),
    "another cluster answers, its identity is not listed": _other_cluster("team=a"),
    "a list lacks most objects": _most_are_missing,
}
