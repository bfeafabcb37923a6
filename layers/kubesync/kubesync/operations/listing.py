"""Complete lists of a cluster without a watch. They end with the session, whatever the API server does.

a list fails                                 ResyncError at once, with the error and advice
SIGTERM, lease lost, the session's deadline  ResyncError within a fraction of a second; connections are cut
a DNS query hangs (nothing can cut it)       the same, and the thread of the query is left behind
"""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from http import HTTPStatus
from typing import Final

from kubesync.actors.answer import Answer
from kubesync.aws.tables.control.clusters import ClusterConfig
from kubesync.cluster.keys.key_writes import Preview
from kubesync.cluster.listener import log_list
from kubesync.domain.errors import TOO_LONG, TOO_LONG_ADVICE, ErrorCode, ListenerError
from kubesync.domain.objects import Resource, Snapshot
from kubesync.domain.sources.registry import may_be_absent
from kubesync.domain.window import Mode, WindowContent
from kubesync.kubernetes.ports import Lister
from kubesync.operations.ports import LIST_SECONDS, Master, ResyncError, wait_for

_CUT_SECONDS: Final = 1.0  # how long to wait until a list that was cut has closed its sockets

_ADVICE: Final[Mapping[ErrorCode, str]] = {
    ErrorCode.PARSE_DOMAIN: "check the server's address (`kubesync cluster show`)",
    ErrorCode.CONNECT_FAILED: "check that the API server runs, its address, and the network in between",
    ErrorCode.SSL_HANDSHAKE: "check the CA that the cluster was added with (--ca-file), and the server's certificate",
    ErrorCode.REQUEST_URI: "check what stands between here and the API server",
    ErrorCode.REQUEST_DENIED: "check the cluster's token and its rights (docs/cluster-access.yaml)",
    ErrorCode.REQUEST_STATUS: "look at the API server and at the address that the cluster was added with",
    ErrorCode.READ_BODY: "check what stands between here and the API server",
}


def advice(errors: Mapping[str, ListenerError]) -> str:
    """Advice to a person about errors of a cluster's listeners, in one line."""
    return "; ".join(dict.fromkeys(_advice(error) for _, error in sorted(errors.items())))


def _advice(error: ListenerError) -> str:
    """Return what a person can do about an error of a listener."""
    too_long = error.code is ErrorCode.READ_BODY and TOO_LONG in error.message
    return TOO_LONG_ADVICE if too_long else _ADVICE[error.code]


@contextmanager
def list_now(master: Master, config: ClusterConfig, check: Callable[[], None]) -> Iterator[WindowContent]:
    """List all resources of a cluster in a thread, and yield the complete lists, as a merge window without events.

    They hold room in memory (``ListRoom``) as long as the context lasts: first this waits in line for room, then lists. A thread that does not end
    in time is left behind.

    Raises:
        ResyncError: a list fails, or takes longer than LIST_SECONDS, without the time in line.
        Exception: what ``check`` raises if the wait must stop.
    """
    # ``together``: all lists stay in memory until the last one is read.
    clock, reservation = master.parts.scheduler, master.room.for_cluster(together=True)
    began = clock.monotonic()
    done: Answer[dict[Resource, Snapshot]] = Answer(clock)

    def in_time() -> None:
        check()
        # The time counts once room is given, not while this waits in line for it.
        if not reservation.waiting and clock.monotonic() >= max(began, reservation.given_at) + LIST_SECONDS:
            raise ResyncError(f"cluster {config.name} could not be listed in time: no answer")

    try:
        try:
            listers = {
                resource: master.parts.connector.lister(config, resource, reservation.for_list())
                for resource in config.resources
            }
            list_all = partial(_list_all, master, config, listers)
            thread = clock.thread(f"{config.name}/lists", partial(done.fulfil, list_all))
            thread.start()
            try:
                found = wait_for(done, in_time)
            finally:
                for lister in listers.values():  # it has no effect on one that is done
                    lister.stop()
                thread.join(_CUT_SECONDS)
        except ListenerError as error:
            check()  # raises if the time is over: then the failed list is no error of the cluster
            said = f"{error.code.key}: {error.message}; {_advice(error)}"
            raise ResyncError(f"cluster {config.name} could not be listed: {said}") from error
        versions: dict[Resource, int] = {resource: listed.resource_version for resource, listed in found.items()}
        # A window of lists alone, which opened now: it has no events, and received none.
        yield WindowContent((), found, versions, clock.monotonic(), 0)
    finally:
        reservation.end()


def preview_lists(master: Master, config: ClusterConfig, mode: Mode, check: Callable[[], None]) -> Preview:
    """Preview the effects of complete lists. Writes nothing. Raises ResyncError."""
    previewer = master.previewer(config)  # reads the checkpoints, before the lists
    with list_now(master, config, check) as content:
        return previewer.preview(content, mode, check)


def _list_all(master: Master, config: ClusterConfig, listers: Mapping[Resource, Lister]) -> dict[Resource, Snapshot]:
    """List one resource after another. Leaves out a resource that the cluster never served (``KeyStates.absent``).

    the API server answers 404, and                                            the resource
    -------------------------------                                            ------------
    every cluster has it (``may_be_absent`` is false)                          fails
    an earlier session has listed it                                           fails: it is gone, which proves no absence (I5)
    earlier sessions have listed other resources of the cluster, not this one  is left out
    no session has listed anything of the cluster                              fails: it is not known yet what the cluster serves
    """
    found: dict[Resource, Snapshot] = {}
    for resource, lister in listers.items():
        try:
            found[resource] = lister.run(master.term.deadline)
        except ListenerError as error:
            if error.status != HTTPStatus.NOT_FOUND or not may_be_absent(resource):
                raise
            listed = master.tables.listeners.checkpoints(config.name)
            if resource in listed or not listed:
                raise
        else:
            log_list(config.name, found[resource])
    return found
