"""Actors share nothing: in the simulation, a thread that touches an attribute of another thread's actor fails the run.

An actor belongs to the thread of its host once that runs, with all its parts; what it makes later belongs to that thread, too. Others may only
send messages to the host, and read what it has published, which must not change any more. Threads of no simulation (other tests) are not
looked at.
"""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any, Final

from kubesync.actors.actor import Host
from kubesync.cluster.actor import ClusterActor
from kubesync.cluster.keys.key_states import KeyStates
from kubesync.cluster.listener import Listeners
from kubesync.cluster.run import ListeningRun
from kubesync.cluster.served_keys import PromotedKeys, Published, Readers, ServedKeys
from kubesync.cluster.serving import Serving
from kubesync.cluster.tasks import Lane
from kubesync.operations.requests import ResyncActor
from kubesync.upstreams.actor import NamedUpstreams
from kubesync.upstreams.composer import Composer
from kubesync.zone.actor import ZoneActor
from kubesync.zone.queue import ZoneQueue
from kubesync.zone.writer import BatchWriter

if TYPE_CHECKING:
    from simulation.machine import SimThread

_ANYBODY: Final[dict[type, frozenset[str]]] = {
    **dict.fromkeys((ClusterActor, Lane, Serving, ServedKeys, Published, PromotedKeys, Readers), frozenset[str]()),
    **dict.fromkeys((ListeningRun, Listeners), frozenset[str]()),
    KeyStates: frozenset(),
    ZoneActor: frozenset(),
    ZoneQueue: frozenset(),
    BatchWriter: frozenset(),
    Composer: frozenset(),
    # Their own methods for the session's thread, which send to the host, and flags that they document.
    NamedUpstreams: frozenset(
        {"load", "start", "ask", "wake", "stop", "join", "marked"}
        | {"_clock", "_composer", "_composing", "host", "_until"}
    ),
    ResyncActor: frozenset({"take", "close", "join", "_host"}),
}
"""Classes of actors and their parts, with what any thread may touch."""
_OWNER: Final = "_owner_in_the_simulation"
_PUBLISHED: Final = "_published_in_the_simulation"
_running: Final[dict[int, SimThread]] = {}


def enter(thread: SimThread) -> None:
    """From now on the calling thread plays this one. The thread of a host takes its actor over."""
    _running[threading.get_ident()] = thread
    host = getattr(thread.run, "__self__", None)
    if isinstance(host, Host):
        thread.is_actor = True
        _give(vars(host)["_actor"], thread)


def leave() -> None:
    del _running[threading.get_ident()]


def _give(part: Any, thread: SimThread) -> None:
    if type(part) in _ANYBODY:
        own = object.__getattribute__(part, "__dict__")
        own[_OWNER] = thread
        for each in list(own.values()):
            if type(each) in _ANYBODY and object.__getattribute__(each, "__dict__").get(_OWNER) is not thread:
                _give(each, thread)


def _check(part: object, name: str) -> None:
    me = _running.get(threading.get_ident())
    if me is None:
        return
    own = object.__getattribute__(part, "__dict__")
    owner = own.get(_OWNER)
    if owner is me:
        return
    if owner is None:
        if me.is_actor:
            own[_OWNER] = me
    elif name not in _ANYBODY[type(part)] and not name.startswith("__") and owner.process is me.process:
        me.machine.touched(f"{me.name} touches {type(part).__name__}.{name} of {owner.name}")


def guard(kind: type, anybody: frozenset[str] = frozenset()) -> None:
    """Look at every access to attributes of a class.

    Args:
        anybody: what any thread may touch.
    """
    _ANYBODY[kind] = anybody

    def get(self: object, name: str) -> Any:
        _check(self, name)
        return object.__getattribute__(self, name)

    def put(self: object, name: str, value: object) -> None:
        _check(self, name)
        object.__setattr__(self, name, value)

    kind.__getattribute__ = get  # type: ignore[assignment,method-assign]
    kind.__setattr__ = put  # type: ignore[assignment,method-assign]


def _publish(host: Host[Any]) -> None:
    me = _running.get(threading.get_ident())
    before = vars(host).get(_PUBLISHED)
    if me is not None and before is not None and before != repr(host.figures):
        me.machine.touched(f"figures of {host.name} have changed after they were published")
    _really_publish(host)
    if me is not None:
        vars(host)[_PUBLISHED] = repr(host.figures)


_really_publish: Final = Host.publish
setattr(Host, "publish", _publish)  # noqa: B010 - a method of every host
for _kind, _anybody in list(_ANYBODY.items()):
    guard(_kind, _anybody)
