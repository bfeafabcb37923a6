"""Subsegments of the trace that Lambda keeps of an invocation, by Powertools' Tracer, which sends them to the daemon beside the function.

Lambda says with each invocation whether its trace is kept (``Tracing: Active``, and sampled). Where it is not, nothing is
imported, opened or sent. The Tracer's SDK patches nothing here: clients are what they are without it.
https://docs.aws.amazon.com/lambda/latest/dg/services-xray.html
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final, Protocol, cast

type Value = str | int | float | bool

_TRACE: Final = "_X_AMZN_TRACE_ID"


@dataclass(frozen=True, slots=True)
class Step:
    """Something that took time.

    Args:
        name: of letters, digits, spaces and ``_ . : / % & # = + - @``; others are left out (X-Ray's rule for names).
        began, ended: seconds since 1970.
        facts: shown with it.
        indexed: shown, and can be searched for; names of letters, digits and underscores.
        failure: how it failed, as X-Ray tells: ``error`` (ours), ``throttle`` or ``fault`` (theirs); empty where it did not.
    """

    name: str
    began: float
    ended: float
    facts: Mapping[str, Value] = field(default_factory=dict)
    indexed: Mapping[str, Value] = field(default_factory=dict)
    failure: str = ""


class StepWriter(Protocol):
    """Takes steps that are over, from any thread. May raise whatever it likes; the caller goes on without it."""

    def write(self, step: Step) -> None: ...


class _Subsegment(Protocol):
    """What is used of the SDK's."""

    start_time: float

    def put_annotation(self, key: str, value: Value) -> None: ...
    def put_metadata(self, key: str, value: Value, namespace: str) -> None: ...
    def add_error_flag(self) -> None: ...
    def add_throttle_flag(self) -> None: ...
    def add_fault_flag(self) -> None: ...


class _Recorder(Protocol):
    def begin_subsegment(self, name: str) -> _Subsegment | None: ...
    def end_subsegment(self, end_time: float) -> None: ...


class XRaySteps:
    """Implements ``StepWriter``: each step a subsegment of the function's own segment, sent at once by UDP."""

    def __init__(self, recorder: _Recorder, service: str) -> None:
        self._recorder = recorder
        self._service = service

    def write(self, step: Step) -> None:
        # Begun and ended in one go: the SDK's stack of open subsegments, one for each thread, is never more than this one.
        subsegment = self._recorder.begin_subsegment(step.name)
        if subsegment is None:
            return
        try:
            subsegment.start_time = step.began
            for name, value in step.indexed.items():
                subsegment.put_annotation(name, value)
            for name, value in step.facts.items():
                subsegment.put_metadata(name, value, self._service)
            if step.failure == "throttle":
                subsegment.add_throttle_flag()
            elif step.failure == "fault":
                subsegment.add_fault_flag()
            elif step.failure:
                subsegment.add_error_flag()
        finally:
            self._recorder.end_subsegment(step.ended)


def steps_of_this_invocation(service: str, environment: Mapping[str, str] | None = None) -> StepWriter | None:
    """Where to write the steps of the invocation that has just begun; None: its trace is not kept.

    Args:
        service: the namespace of what is shown with a step.
    """
    values = os.environ if environment is None else environment
    if "Sampled=1" not in values.get(_TRACE, "").split(";"):
        return None
    from aws_lambda_powertools import Tracer  # and with it, when it is made, the SDK: only where it is used

    tracer = Tracer(service=service, auto_patch=False)
    if tracer.disabled:  # POWERTOOLS_TRACE_DISABLED, or `sam local`
        return None
    return XRaySteps(cast("_Recorder", tracer.provider), service)
