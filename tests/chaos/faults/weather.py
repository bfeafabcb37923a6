"""Bad input and bad weather: the scenarios of ``tests/integration/weather``, each of them a case, the seeded ones many times."""

import traceback
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

from chaos.faults import minutes
from chaos.sections import Effort, Outcome, Section, sample
from harness.seen.raw_objects import RESOURCES
from integration.weather import (
    scenarios_absence as absence,
    scenarios_bad_objects as bad_objects,
    scenarios_isolation as isolation,
    scenarios_secrets as secrets,
    scenarios_silence as silence,
    scenarios_storms as storms,
)

# More than this many cases of a section do not fit a short run beside those of the others.
_SHORT: Final = 4


@dataclass(frozen=True, slots=True)
class Case:
    """A scenario by its name, and what it is played with."""

    scenario: str
    arguments: tuple[Any, ...] = ()

    def __str__(self) -> str:
        return f"{self.scenario}({', '.join(map(repr, self.arguments))})"


_PLAYS: Final[Mapping[str, Callable[..., Any]]] = {
    "watched": lambda title: bad_objects.play_watched(bad_objects.BAD[title]),
    "listed": lambda title: bad_objects.play_listed(bad_objects.BAD[title]),
    "bad among many": isolation.play_bad_among_many,
    "zone in trouble": isolation.play_zone_in_trouble,
    "cluster in trouble": isolation.play_cluster_in_trouble,
    "identity without answer": isolation.play_identity_that_is_not_answered,
    "held and released": absence.play_held_and_released,
    "another cluster": absence.play_another_cluster_at_the_address,
    "endpoints of another cluster": lambda uid: absence.play_endpoints_of_another_cluster(
        absence.ANOTHER if uid else absence.NO_ANSWER
    ),
    "broken list": absence.play_broken_list,
    "endpoints denied": absence.play_endpoints_denied,
    "restored": lambda watching: absence.play_restored(watching=watching),
    "came and went": absence.play_came_and_went,
    "large absence": absence.play_large_absence_is_held,
    "silence": silence.play_silence,
    "quiet": silence.play_quiet_is_not_silence,
    "route 53 throttles": storms.play_route53,
    "dynamodb throttles": storms.play_dynamodb,
    "dynamodb throttles at the start": partial(storms.play_dynamodb, at_start=True),
    "unprocessed keys": storms.play_unprocessed,
    "api server throttles": storms.play_api_server,
    "a minute of throttling": minutes.play_minute,
    "a minute of 429": minutes.play_busy_server,
    "token repeated": secrets.play_repeated,
}


def play(case: object) -> Outcome:
    """Play a scenario; what it asserts in vain is a violation. Its stack looks for leaked credentials when it ends (I8)."""
    assert isinstance(case, Case)
    try:
        said = _PLAYS[case.scenario](*case.arguments)
    except AssertionError as error:
        where = traceback.extract_tb(error.__traceback__)[-1]
        return Outcome([f"{where.name}:{where.lineno}: {str(error)[:300] or where.line}"])
    return Outcome([], said if isinstance(said, str) else "")


def fault(case: object) -> str:
    """The scenario; where it has a title of its own, by that."""
    assert isinstance(case, Case)
    words = [argument for argument in case.arguments if isinstance(argument, str)]
    return f"{case.scenario}, {words[0]}" if words and case.scenario not in ("watched", "listed") else case.scenario


def _some(cases: Sequence[Case], effort: Effort, most: int = _SHORT) -> Sequence[Case]:
    return sample(cases, most, effort.seed) if effort.short else cases


def _bad_objects(effort: Effort) -> Sequence[Case]:
    return _some([Case(way, (title,)) for title in bad_objects.BAD for way in ("watched", "listed")], effort)


def _isolation(effort: Effort) -> Sequence[Case]:
    counts = [1, 2, 3, 5, 8, 13, 25, 50]
    cases = [Case("bad among many", (bad,)) for bad in counts]
    cases += [Case("bad among many", (bad, 100)) for bad in counts]
    cases += [Case("zone in trouble", (title,)) for title in isolation.TROUBLES]
    cases += [Case("cluster in trouble", (title,)) for title in ["unreachable", *isolation.SLOW]]
    return _some([*cases, Case("identity without answer")], effort)


def _absence(effort: Effort) -> Sequence[Case]:
    empties = [("services",), ("endpoints",), ("services", "endpoints")]
    cases = [Case("held and released", (count, empty)) for count in (12, 40) for empty in empties]
    cases += [
        Case("held and released", (count, empty)) for count in (1, 4, 9) for empty in empties if "services" in empty
    ]
    cases += [Case("another cluster", (count,)) for count in (1, 3, 9, 12, 40)]
    cases += [Case("endpoints of another cluster", (uid,)) for uid in (True, False)]
    cases += [
        Case("broken list", (title, resource))
        for title in absence.BROKEN_LISTS
        for resource in RESOURCES
        if resource != "endpointslices"
    ]
    cases += [Case("restored", (watching,)) for watching in (True, False)]
    cases += [Case("came and went", (when,)) for when in ("between sessions", "between list and watch")]
    cases += [Case("large absence", (12, missing)) for missing in (4, 5, 11)]
    # Whatever else is sampled: a list of the same cluster that lacks most objects is what the guard alone is for.
    large = [Case("large absence", (12, 11))] if effort.short else []
    return [*large, *_some([*cases, Case("endpoints denied")], effort)]


def _silence(effort: Effort) -> Sequence[Case]:
    cases = [Case("silence", (how, rounds)) for how in ("old", "all") for rounds in (1, 3, 5)]
    return _some([*cases, Case("quiet")], effort, most=2)


def _storms(effort: Effort) -> Sequence[Case]:
    seeds = range(effort.seed, effort.seed + 5)
    cases = [Case("route 53 throttles", (code,)) for code in ("Throttling", "PriorRequestNotComplete")]
    cases += [Case("dynamodb throttles", (probability, seed)) for probability in (0.3, 0.6, 1.0) for seed in seeds]
    cases += [Case("dynamodb throttles at the start", (1.0, seed)) for seed in seeds]
    cases += [Case("unprocessed keys", (seed,)) for seed in seeds]
    cases += [Case("api server throttles", (verb, after)) for verb in ("list", "watch") for after in (None, 1, 2)]
    minute = [Case("a minute of 429", (verb, after)) for verb in ("list", "watch") for after in (None, 1, 5)]
    minute += [
        Case("a minute of throttling", (service, probability, session, seed))
        for service, probability in (("route53", 1.0), ("dynamodb", 1.0), ("dynamodb", 0.5))
        for session in range(4)
        for seed in [effort.seed]
    ]
    return [*_some(minute, effort, most=4), *_some(cases, effort, most=2)]


def _secrets(effort: Effort) -> Sequence[Case]:
    return _some([Case("token repeated", (how,)) for how in secrets.HOW], effort)


SECTIONS: Final = (
    Section(5, "bad objects among good ones", "I4", _bad_objects, play, fault=fault),
    Section(6, "a change, zone or cluster in trouble", "I3 I4 I8", _isolation, play, workers=2, fault=fault),
    Section(7, "absence that is none", "I5 I8", _absence, play, workers=2, fault=fault),
    Section(8, "connections that die silently", "I1 I8", _silence, play, workers=2, fault=fault),
    Section(9, "throttling", "I1 I8", _storms, play, workers=2, fault=fault),
    Section(11, "tokens that are repeated", "I8", _secrets, play, workers=2, fault=fault),
)
