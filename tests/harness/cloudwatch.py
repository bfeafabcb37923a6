"""A small strict CloudWatch: it takes lines of the embedded metric format and numbers of AWS's own, and evaluates the template's alarms.

Each minute an alarm looks at its evaluation range: the last ``EvaluationPeriods`` periods that are complete, and two more. How it treats
missing data:
https://docs.aws.amazon.com/AmazonCloudWatch/latest/monitoring/alarms-and-missing-data.html, "How alarm state is evaluated when data is
missing". ``tests/unit/house/test_cloudwatch.py`` holds that page's tables.
"""

import json
import operator
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from harness.wire.template import read_template, resources

PERIOD_SECONDS: Final = 60
_MORE_PERIODS: Final = 2
_COMPARISONS: Final[Mapping[str, Callable[[float, float], bool]]] = {
    "GreaterThanThreshold": operator.gt,
    "GreaterThanOrEqualToThreshold": operator.ge,
    "LessThanThreshold": operator.lt,
    "LessThanOrEqualToThreshold": operator.le,
}
_STATISTICS: Final[Mapping[str, Callable[[Sequence[float]], float]]] = {"Sum": sum, "Maximum": max, "Minimum": min}

type _Metric = tuple[str, str, frozenset[tuple[str, str]]]


def state_of(datapoints: Sequence[bool | None], needed: int, of: int, missing: str, before: str) -> str:
    """The state of an alarm.

    Args:
        datapoints: of the evaluation range, the oldest first: whether each is breaching; None: it is missing.
        needed: ``DatapointsToAlarm``, ``of``: ``EvaluationPeriods``.
        missing: ``TreatMissingData``.
    """
    found = [breaching for breaching in datapoints if breaching is not None][-of:]
    filled = of - len(found)
    if sum(found) >= needed:
        return "ALARM"
    if not filled:
        return "OK"
    match missing:
        case "breaching":
            return "ALARM" if sum(found) + filled >= needed else "OK"
        case "notBreaching":
            return "OK"
        case "ignore":
            return before if all(found) else "OK"
        case _:
            raise AssertionError(f"no alarm of ours treats missing data as {missing}")


@dataclass
class Alarm:
    """One alarm of the template. ``changes``: when (epoch seconds) it went to which state."""

    name: str
    metric: _Metric
    statistic: str
    minutes: int
    needed: int
    of: int
    threshold: float
    comparison: str
    missing: str
    state: str = "INSUFFICIENT_DATA"
    changes: list[tuple[float, str]] = field(default_factory=list)


class CloudWatch:
    """Metrics and alarms of deployment ``test``.

    Args:
        parameters: of the template, besides their defaults.
    """

    def __init__(self, parameters: Mapping[str, Any], epoch: float) -> None:
        template = read_template()
        defaults = {name: entry.get("Default") for name, entry in template["Parameters"].items()}
        self._parameters = {**defaults, **parameters, "WatchFunction": "watch", "DeploymentId": "test"}
        self._values: dict[_Metric, dict[int, list[float]]] = {}
        self._evaluated = int(epoch) // PERIOD_SECONDS
        self._first = self._evaluated
        alarms = resources(template, "AWS::CloudWatch::Alarm", int(parameters.get("Shards", 1)))
        self.alarms = {
            name.removesuffix("Alarm"): self._alarm(name, each["Properties"]) for name, each in alarms.items()
        }

    def _alarm(self, name: str, spec: Mapping[str, Any]) -> Alarm:
        assert spec["Period"] % PERIOD_SECONDS == 0, "shorter periods are not built"
        dimensions = frozenset((each["Name"], str(self._resolved(each["Value"]))) for each in spec["Dimensions"])
        return Alarm(
            name.removesuffix("Alarm"),
            (spec["Namespace"], spec["MetricName"], dimensions),
            spec["Statistic"],
            spec["Period"] // PERIOD_SECONDS,
            int(self._resolved(spec["DatapointsToAlarm"])),
            int(self._resolved(spec["EvaluationPeriods"])),
            float(self._resolved(spec["Threshold"])),
            spec["ComparisonOperator"],
            spec["TreatMissingData"],
        )

    def _resolved(self, value: Any) -> Any:
        match value:
            case {"Ref": str(name)}:
                return self._parameters[name]
            case {"Fn::Sub": str(text)}:
                return text.replace("${DeploymentId}", "test")
            case {"Fn::GetAtt": str(text)}:
                return text
            case dict():
                raise AssertionError(f"not built: {value}")
            case _:
                return value

    # --- metrics ---

    def lines(self, text: str, epoch: float) -> None:
        """Lines in the embedded metric format, written at this time."""
        for line in filter(None, text.splitlines()):
            fields = json.loads(line)
            for directive in fields["_aws"]["CloudWatchMetrics"]:
                for names in directive["Dimensions"]:
                    dimensions = {name: fields[name] for name in names}
                    for metric in directive["Metrics"]:
                        for value in fields[metric["Name"]]:
                            self.put(directive["Namespace"], metric["Name"], dimensions, value, epoch)

    def put(self, namespace: str, name: str, dimensions: Mapping[str, str], value: float, epoch: float) -> None:
        """One value, at this time."""
        minute = int(epoch) // PERIOD_SECONDS
        key = namespace, name, frozenset(dimensions.items())
        self._values.setdefault(key, {}).setdefault(minute, []).append(value)

    def seen(self, name: str) -> dict[int, list[float]]:
        """All values of a metric of ours, by minute since the beginning."""
        return {
            minute - self._first: values
            for (_, known, _), by_minute in self._values.items()
            if known == name
            for minute, values in sorted(by_minute.items())
        }

    # --- alarms ---

    def evaluate(self, epoch: float) -> None:
        """Evaluate every alarm at each full minute up to now."""
        for minute in range(self._evaluated + 1, int(epoch) // PERIOD_SECONDS + 1):
            for alarm in self.alarms.values():
                self._evaluate(alarm, minute)
        self._evaluated = max(self._evaluated, int(epoch) // PERIOD_SECONDS)

    def _evaluate(self, alarm: Alarm, minute: int) -> None:
        values, breaches = self._values.get(alarm.metric, {}), _COMPARISONS[alarm.comparison]
        last = minute // alarm.minutes  # periods are aligned; those before are complete
        datapoints: list[bool | None] = []
        for period in range(last - alarm.of - _MORE_PERIODS, last):
            minutes = range(period * alarm.minutes, (period + 1) * alarm.minutes)
            seen = [value for each in minutes for value in values.get(each, ())]
            datapoints.append(breaches(_STATISTICS[alarm.statistic](seen), alarm.threshold) if seen else None)
        state = state_of(datapoints, alarm.needed, alarm.of, alarm.missing, alarm.state)
        if state != alarm.state:
            alarm.state = state
            alarm.changes.append((minute * PERIOD_SECONDS, state))

    @property
    def on(self) -> set[str]:
        """Alarms that are on now."""
        return {name for name, alarm in self.alarms.items() if alarm.state == "ALARM"}
