"""Rows about names that pass from one object to another: each runs a whole deployment, and is read off the zone batch by batch."""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from harness.deployment import ZONE_ID, Deployment
from harness.dns_cases.notation import key_of, line_of
from kubesync.aws.route53.zones import BatchChange
from kubesync.aws.tables.state import StateTable
from kubesync.domain.objects import SERVICE, Resource, Service
from kubesync.domain.sources.ingresses import INGRESSES, Ingress
from kubesync_local.standins.route53.zone.model import Limits

NAME: Final = "www.example.com"
NOTHING: Final = "nothing"
_PASS: Final = re.compile(r"(\d+) s pass")
_SOON: Final = 3.0
# Longer than a deletion waits for an heir that does not come.
_QUIET: Final = 9.0

type Step = float | tuple[str, Service | Ingress | None]
"""Seconds that pass, or what becomes of an object; None: it goes."""


class PassingDeployment(Deployment):
    """Clusters ``prod`` and ``dev`` in one zone. ``answers``: what stood at the name, after each batch."""

    def __init__(self, **config: Any) -> None:
        limits = Limits(health_checks=frozenset({"known"}))
        config = {"domain_filter": ("example.com",), "sources": ("service", "ingress"), **config}
        super().__init__(limits=limits, **config)
        self.dev = self.add_cluster("dev")
        self.answers: list[str] = [NOTHING]
        self.after_batch: Callable[[], None] = lambda: None
        change = self.route53.change

        def noted(zone_id: str, changes: Sequence[BatchChange], comment: str, session: str) -> None:
            change(zone_id, changes, comment, session)
            if self.answer != self.answers[-1]:
                self.answers.append(self.answer)
            self.after_batch()

        self.route53.change = noted  # type: ignore[method-assign]  # listens in

    @property
    def answer(self) -> str:
        """What stands at the name now, without names and TTL."""
        lines = (
            line_of(key, each, zones=False)
            for key, each in sorted(self.route53.records(ZONE_ID).items())
            if key.name == NAME
        )
        return " / ".join(line.removeprefix(f"{NAME} ").replace(" 30 ", " ") for line in lines) or NOTHING

    def put(self, text: str, value: Service | Ingress | None) -> None:
        """Make, change or delete an object, by its key."""
        key = key_of(text)
        cluster = self.world.clusters[key.cluster]
        resource = Resource.SERVICES if key.kind == SERVICE else INGRESSES
        if value is None:
            cluster.delete(resource, key.name, key.namespace)
        else:
            cluster.apply(key.name, value, namespace=key.namespace, resource=resource)

    def reported(self, texts: Sequence[str]) -> list[str]:
        """What is reported of these objects."""
        states = StateTable(self.store).load([key_of(text) for text in texts])
        return sorted(f"{key}: {p.code} {p.subject}" for key, state in states.items() for p in state.problems)


@dataclass(frozen=True)
class PassingCase:
    """Objects appear one after the other, then something happens.

    Args:
        answers: what stands at ``NAME``, from when all of ``before`` have appeared: one line for each batch that changed it.
        problems: ``KEY: CODE subject``, in the end.
    """

    title: str
    before: Mapping[str, Service | Ingress]
    then: Sequence[Step]
    answers: Sequence[str]
    problems: Sequence[str] = ()
    settings: Mapping[str, Any] = field(default_factory=dict)

    def outcome(self) -> tuple[list[str], list[str]]:
        """As the sessions have it. No batch is refused, and nothing stays open."""
        deployment = PassingDeployment(ttl=30, **self.settings)
        deployment.start()
        for key, made in self.before.items():
            deployment.put(key, made)
            deployment.pass_time(_SOON)
        deployment.pass_time(_SOON)
        deployment.answers[:] = [deployment.answer]
        for step in self.then:
            if isinstance(step, float):
                deployment.pass_time(step)
            else:
                deployment.put(*step)
        deployment.pass_time(_QUIET)
        keys = sorted({*self.before, *(step[0] for step in self.then if not isinstance(step, float))})
        found = deployment.answers, deployment.reported(keys)
        assert deployment.refusals == []
        # Notes at other names say what aliases follow.
        assert (deployment.open(), [each for each in deployment.heirs() if NAME in each]) == ({}, [])
        deployment.close()
        return found


def read_passing(
    made: Callable[[str], Callable[[str], Service | Ingress]], title: str, before: Sequence[str], then: Sequence[str],
    answers: Sequence[str], problems: Sequence[str],
) -> PassingCase:  # fmt: skip
    """A row. ``made``: an object of its text, given its creationTimestamp. Those of ``before`` are older than what comes later."""

    def step(line: str, number: int) -> Step:
        if match := _PASS.fullmatch(line):
            return float(match[1])
        if line.endswith("` goes"):
            return line.removesuffix("` goes").removeprefix("`"), None
        key, _, text = line.partition("`: ")
        return key.removeprefix("`"), made(text)(ages.setdefault(key, f"2026-01-{number:02}T00:00:00Z"))

    ages: dict[str, str] = {}
    steps = [step(line, number) for number, line in enumerate((*before, *then), 1)]
    objects: dict[str, Service | Ingress] = {}
    for each in steps[: len(before)]:
        assert not isinstance(each, float)
        assert each[1] is not None
        objects[each[0]] = each[1]
    return PassingCase(title, objects, steps[len(before) :], answers, problems)
