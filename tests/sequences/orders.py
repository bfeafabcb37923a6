"""The same changes in another order: those of one object stay in theirs, those of different objects change places."""

import random
from collections import defaultdict, deque

from kubesync.domain.objects import Resource, Service
from kubesync.domain.sources.ingresses import INGRESSES, Ingress
from sequences.steps import Delete, Put, Register, Script, Step, Unregister

type Place = tuple[str, Resource, str, str]


def place_of(step: Put | Delete) -> Place:
    """The object that a step changes."""
    if isinstance(step, Delete):
        return (step.cluster, step.resource, step.namespace, step.name)
    if isinstance(step.value, Service):
        return (step.cluster, Resource.SERVICES, step.namespace, step.name)
    if isinstance(step.value, Ingress):
        return (step.cluster, INGRESSES, step.namespace, step.name)
    if step.slice_name:
        return (step.cluster, Resource.ENDPOINTSLICES, step.namespace, step.slice_name)
    return (step.cluster, Resource.ENDPOINTS, step.namespace, step.name)


def in_another_order(script: Script, chance: int) -> Script:
    """Put changes of objects at each other's places in the script; everything else stays where it is."""
    waiting: dict[Place, deque[Step]] = defaultdict(deque)
    for step in script:
        if isinstance(step, Put | Delete):
            waiting[place_of(step)].append(step)
    turns = [place for place, steps in waiting.items() for _ in steps]
    random.Random(chance).shuffle(turns)
    following = iter(turns)
    return tuple(waiting[next(following)].popleft() if isinstance(step, Put | Delete) else step for step in script)


def without_registrations(script: Script) -> Script:
    """A cluster can be registered again only once it is gone, and when that is depends on all the rest."""
    return tuple(step for step in script if not isinstance(step, Unregister | Register))
