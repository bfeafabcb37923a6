"""``kubesync render``: upstreams as a proxy's configuration, once or with every change."""

from __future__ import annotations

import argparse
import os
import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final

from kubesync.actors.scheduler import Clock
from kubesync.actors.threads import ThreadScheduler
from kubesync.domain.errors import KubesyncError, StoreError, StoreUnavailableError, UsageError
from kubesync_local.commands.run.render_bounds import given_bounds, given_namespaces
from kubesync_local.proxies.belief import Asked, BelievedOutput
from kubesync_local.proxies.files.commands import Command
from kubesync_local.proxies.files.directories import directory_of, unsafe
from kubesync_local.proxies.files.locking import only_writer
from kubesync_local.proxies.files.output import Output
from kubesync_local.proxies.files.status import Look, StatusFile
from kubesync_local.proxies.files.writing import is_replaceable
from kubesync_local.proxies.formats.envoy import EnvoyDirectory, EnvoyFile
from kubesync_local.proxies.formats.form import Form
from kubesync_local.proxies.formats.haproxy import Haproxy
from kubesync_local.proxies.formats.json_form import JsonForm
from kubesync_local.proxies.formats.nginx import Nginx
from kubesync_local.proxies.left_out import LeftOut
from kubesync_local.proxies.names import is_key, protocol_of
from kubesync_local.proxies.renderer import Renderer, WhenEmpty
from kubesync_local.proxies.table.following import FollowedUpstreams
from kubesync_local.proxies.table.lost import LostUpstreams
from kubesync_local.proxies.table.polling import MOST_KEYS, PolledUpstreams
from kubesync_local.proxies.table.reading import UpstreamReader, selection, upstream_store
from kubesync_local.proxies.table.stream import TableStream
from kubesync_local.proxies.table.stream_client import stream_arn, stream_client
from kubesync_local.proxies.watching import Source, watch
from kubesync_local.terminal.output import remark
from kubesync_local.terminal.signals import handled
from kubesync_local.workplace.whereabouts import located
from kubesync_local.workplace.workplace import Workplace

if TYPE_CHECKING:
    from types import FrameType

_SAID: Final = "kubesync render: "


class RenderFailedError(KubesyncError):
    """The files or the proxy are not up to date."""


def run(arguments: argparse.Namespace) -> int:
    """Render once, or with ``--watch`` until SIGTERM or Ctrl-C."""
    form = _form(arguments)
    _check(arguments, form)
    clock = ThreadScheduler()
    bounds = given_bounds(arguments)
    left_out = LeftOut(bounds.max_nodes, _say, clock.monotonic)
    renderer = Renderer(form, arguments.zone, WhenEmpty(arguments.when_empty), _say, left_out, bounds)
    with _only_writer(arguments):
        _warn(arguments)
        return _render(arguments, renderer, clock)


def _render(arguments: argparse.Namespace, renderer: Renderer, clock: ThreadScheduler) -> int:
    work = Workplace()
    store = upstream_store(work.boto, work.settings.tables, clock)
    reader = UpstreamReader(store, clock, _say)
    protocols = arguments.protocol or renderer.form.protocols[:1]
    namespaces = given_namespaces(arguments)
    wanted = selection(arguments.cluster, protocols, namespaces)
    asked = Asked(arguments.upstream, arguments.cluster, protocols, namespaces)
    if arguments.watch:
        source: Source
        lost = LostUpstreams(_say)
        if arguments.upstream:
            cheap = upstream_store(work.boto, work.settings.tables, clock, consistent=False)
            source = PolledUpstreams(reader, cheap, arguments.upstream, lost, clock.monotonic)
        else:
            arn = partial(stream_arn, work.boto, work.settings.tables)
            stream = TableStream(stream_client(work.boto), arn, clock.monotonic)
            source = FollowedUpstreams(reader, stream, wanted, clock.monotonic, lost)
        output = _output(arguments, renderer, clock)
        believed = BelievedOutput(asked, source, output, _say, reader.nearest, waits=arguments.ignore_not_found)

        def problem() -> str:
            return output.failed or believed.problem or reader.problem or lost.problem

        with _status(arguments.status, output, problem, clock) as looked:
            return _watch(source, believed, output, clock, looked)
    found = reader.named(arguments.upstream) if arguments.upstream else reader.every(wanted)
    proven = any(each.has_item for each in found.values())
    known = {key for key, each in found.items() if each.has_item} if arguments.upstream else reader.clusters
    unknown = [] if arguments.ignore_not_found else asked.unknown(known)
    if not arguments.upstream:
        found = {key: each for key, each in found.items() if each.present}
    written = _output(arguments, renderer, clock) if arguments.output_file or arguments.output_dir else None
    if written is not None and not proven and written.holds_servers:
        raise RenderFailedError(asked.stays(written.place))
    for line in asked.absent(found, proven=proven):
        _say(line)
    for name in unknown if proven else ():
        _say(asked.line(name, reader.nearest(name)))
    if written is None:
        sys.stdout.write("".join(renderer.files(found).values()))
    elif not written.offer(found):
        raise RenderFailedError(written.failed)
    # Each was said. The file still has what it had of those that cannot be read.
    return 1 if reader.unread or unknown else 0


def _form(arguments: argparse.Namespace) -> Form:
    options, server_options = tuple(arguments.option), tuple(arguments.server_option)
    match arguments.format:
        case "nginx":
            return Nginx(options, server_options)
        case "haproxy":
            return Haproxy(options, server_options)
        case "envoy":
            return EnvoyDirectory(Path(arguments.output_dir).absolute()) if arguments.output_dir else EnvoyFile()
    return JsonForm()


def _check(arguments: argparse.Namespace, form: Form) -> None:
    """Refuse what cannot work.

    Raises:
        UsageError: says which options.
    """
    where = arguments.output_file or arguments.output_dir
    namespaces = given_namespaces(arguments)
    if arguments.watch and not where:
        raise UsageError("--watch needs --output-file or --output-dir")
    _check_status(arguments)
    if (arguments.check or arguments.reload) and not where:
        raise UsageError("--check and --reload need --output-file or --output-dir")
    if arguments.output_dir and arguments.format != "envoy":
        raise UsageError("--output-dir is for envoy: the other formats have one file, see --output-file")
    if arguments.output_file and Path(arguments.output_file).is_dir():
        raise UsageError(f"--output-file {arguments.output_file} is a directory")
    if arguments.output_file and not is_replaceable(Path(arguments.output_file)):
        raise UsageError(f"--output-file {arguments.output_file} is not a regular file: it would be replaced")
    if arguments.output_dir and Path(arguments.output_dir).exists() and not Path(arguments.output_dir).is_dir():
        raise UsageError(f"--output-dir {arguments.output_dir} is not a directory")
    if arguments.output_dir and arguments.check:
        raise UsageError("--check is for one file, not for --output-dir")
    if arguments.format == "envoy" and arguments.output_file and len(set(arguments.upstream)) != 1:
        raise UsageError("Envoy reads one upstream from a file: give one --upstream, or --output-dir for several")
    if arguments.format in ("envoy", "json") and (arguments.option or arguments.server_option):
        raise UsageError(f"--option and --server-option are for nginx and haproxy, not for {arguments.format}")
    if any("\n" in each or "\r" in each for each in (*arguments.option, *arguments.server_option)):
        raise UsageError("--option and --server-option are one line each; give them several times")
    if arguments.upstream and (arguments.cluster or arguments.protocol or namespaces):
        raise UsageError("--upstream names what to render: leave out --cluster, --namespace and --protocol")
    if len(set(arguments.upstream)) > MOST_KEYS:
        raise UsageError(f"at most {MOST_KEYS} --upstream; for more use --cluster, or none for all")
    for key in arguments.upstream:
        if not is_key(key):
            raise UsageError(
                f"{key!r} is not the key of an upstream: CLUSTER/NAMESPACE/SERVICE/PORT/PROTOCOL or named/NAME"
            )
    asked = [protocol_of(key) or "" for key in arguments.upstream] + arguments.protocol
    refused = [protocol for protocol in asked if protocol and protocol not in form.protocols]
    if refused:
        raise UsageError(f"{arguments.format} does not balance {refused[0]}")


def _check_status(arguments: argparse.Namespace) -> None:
    path = arguments.status
    if not path:
        return
    if not arguments.watch:
        raise UsageError("--status needs --watch")
    if os.path.realpath(path) == os.path.realpath(arguments.output_file or arguments.output_dir):
        raise UsageError(f"--status {path} is the output file itself")
    if Path(path).is_dir():
        raise UsageError(f"--status {path} is a directory")
    if not is_replaceable(Path(path)):
        raise UsageError(f"--status {path} is not a regular file: it would be replaced")


@contextmanager
def _only_writer(arguments: argparse.Namespace) -> Iterator[None]:
    """Reading comes after the lock: what is written last was also read last."""
    place = Path(arguments.output_dir or arguments.output_file)
    if arguments.output_dir:
        place.mkdir(mode=0o755, parents=True, exist_ok=True)
    elif not arguments.output_file:
        yield  # to standard output
        return
    with only_writer(place, _say, directory=bool(arguments.output_dir)):
        yield


def _warn(arguments: argparse.Namespace) -> None:
    """Say which directories others may write, once for each."""
    directories = []
    if place := arguments.output_dir or arguments.output_file:
        directories.append(directory_of(Path(place), directory=bool(arguments.output_dir)))
    if arguments.status:  # a link of this name is replaced, so what is behind it does not matter
        directories.append(directory_of(Path(arguments.status).absolute().parent, directory=True))
    for line in unsafe(dict.fromkeys(directories)):
        _say(line)


def _output(arguments: argparse.Namespace, renderer: Renderer, clock: ThreadScheduler) -> Output:
    output = Output(
        renderer,
        Path(arguments.output_dir or arguments.output_file),
        directory=bool(arguments.output_dir),
        check=Command(arguments.check) if arguments.check else None,
        reload=Command(arguments.reload) if arguments.reload else None,
        said=_say if arguments.watch else lambda _: None,
        now=clock.monotonic,
        done=_say if arguments.watch else None,
    )
    output.open()
    return output


@contextmanager
def _status(path: str, output: Output, problem: Callable[[], str], clock: Clock) -> Iterator[Callable[[Look], None]]:
    """What to call after each pass of the loop: it writes the status file, if there is one.

    Raises:
        RenderFailedError: it cannot be written at the start.
    """
    left_out = output.renderer.left_out
    if not path:
        yield lambda _: left_out.report()
        return
    file = StatusFile(Path(path), clock, _say, left_out, problem, lambda: output.writes)
    try:
        file.open()
    except OSError as error:
        raise RenderFailedError(f"--status {path}: {error.strerror}") from None

    def looked(look: Look) -> None:
        left_out.report()
        file.note(look)

    try:
        yield looked
    except BaseException as error:
        file.close(str(error) if isinstance(error, KubesyncError) else type(error).__name__)
        raise
    file.close()


def _watch(
    source: Source, believed: BelievedOutput, output: Output, clock: Clock, looked: Callable[[Look], None]
) -> int:
    came: list[int] = []

    def stop(number: int, _frame: FrameType | None) -> None:
        came.append(number)

    output.stopped = lambda: bool(came)
    with handled(stop, signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        watch(
            source, believed, clock, lambda: bool(came), _say,
            explained=_explained, disturbed=output.disturbed, looked=looked,
        )  # fmt: skip
    _say(f"ended by {signal.Signals(came[0]).name}; configuration left unchanged")
    return 0


def _explained(error: StoreError) -> str:
    return str(located(error) if isinstance(error, StoreUnavailableError) else error)


def _say(text: str) -> None:
    remark(f"{_SAID}{text}")
