"""``kubesync local up``: runs the stand-ins, by default in the foreground, for sessions in other processes and for ``sam local invoke``."""

import argparse
import os
import signal
import socket
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from types import FrameType
from typing import Final

from kubesync_local.commands.local.background import start
from kubesync_local.commands.local.env import export_lines
from kubesync_local.commands.local.running import StateDirectory, state_directory
from kubesync_local.commands.local.written_files import (
    DEPLOYMENT,
    is_env_file,
    is_kubeconfig,
    refuse_foreign,
    write_env_file,
    write_kubeconfig,
)
from kubesync_local.demo.stack import CLUSTER, DOMAIN, REGION, ZONE, DemoStack, Place, demo_stack
from kubesync_local.standins.apiserver.workloads.story import story
from kubesync_local.terminal.logs import set_up_logs
from kubesync_local.terminal.output import print_line, remark
from kubesync_local.terminal.signals import handled

SECRET: Final = "kubesync/demo"  # noqa: S105 - its name
_ANYWHERE: Final = "0.0.0.0"  # noqa: S104 - only if the person gives it


def run(arguments: argparse.Namespace) -> int:
    """Serve until a signal comes, which is the normal end; or start a process that does.

    Raises:
        UsageError, PortError: an address cannot be used.
        RunningError: it runs already.
        OSError: the file cannot be written.
    """
    set_up_logs()
    host = arguments.host
    place = Place(
        host=host,
        dynamodb_port=arguments.dynamodb_port,
        route53_port=arguments.route53_port,
        api_port=arguments.api_port,
        reached_as=_own_address() if host == _ANYWHERE else host,
        secret=SECRET,
        deployment=DEPLOYMENT,
        tls=arguments.kubeconfig is not None,
    )
    env_file, kubeconfig = arguments.env_file, arguments.kubeconfig
    for path, is_ours in ((env_file, is_env_file), (kubeconfig, is_kubeconfig)):
        if path is not None:
            refuse_foreign(path, is_ours)
    state = state_directory(arguments.dir, os.environ)
    if arguments.detach:
        return _detach(arguments, state)
    with _until_signalled() as end, state.taken() as note, demo_stack(place) as stack:
        endpoints = endpoints_of(place, stack.dynamodb.port, stack.route53.port)
        if env_file is not None:
            write_env_file(env_file, endpoints)
        if kubeconfig is not None:
            write_kubeconfig(kubeconfig, stack)
        exports = _exports(endpoints)
        note(exports)
        _print_addresses(stack, exports)
        for step in story(stack.api.cluster) if arguments.story is not None else ():
            if end.wait(arguments.story):
                break
            step.play()
            remark(step.title)
        end.wait()
    remark("ended; nothing was kept")
    return 0


def endpoints_of(place: Place, dynamodb_port: int, route53_port: int) -> dict[str, str]:
    """The variables that send the AWS SDK to the stand-ins, from everywhere that reaches this machine as ``reached_as``."""
    dynamodb = f"http://{place.reached_as}:{dynamodb_port}"
    return {
        "AWS_ENDPOINT_URL_DYNAMODB": dynamodb,
        "AWS_ENDPOINT_URL_ROUTE_53": f"http://{place.reached_as}:{route53_port}",
        "AWS_ENDPOINT_URL_SECRETS_MANAGER": dynamodb,
        "AWS_ENDPOINT_URL_SSM": dynamodb,
    }


def _exports(endpoints: Mapping[str, str]) -> dict[str, str]:
    """All variables that a shell needs."""
    return {
        "AWS_ACCESS_KEY_ID": "local",
        "AWS_SECRET_ACCESS_KEY": "local",
        "AWS_REGION": REGION,
        "AWS_DEFAULT_REGION": REGION,  # the AWS CLI's version 1 knows only this one
        "KUBESYNC_DEPLOYMENT": DEPLOYMENT,
        **endpoints,
    }


def _detach(arguments: argparse.Namespace, state: StateDirectory) -> int:
    given = {
        "--host": arguments.host,
        "--dynamodb-port": arguments.dynamodb_port,
        "--route53-port": arguments.route53_port,
        "--api-port": arguments.api_port,
        "--env-file": arguments.env_file,
        "--kubeconfig": arguments.kubeconfig,
        "--story": arguments.story,
    }
    options = [f"{option}={value}" for option, value in given.items() if value is not None]
    found, status = start(options, state)
    if found is None:
        return status
    for line in export_lines(found.exports, "sh"):
        print_line(line)
    remark(
        f"running in the background (process {found.pid}), log: {state.log}; `kubesync local down{state.option}` ends it"
    )
    remark(
        f'in each shell: eval "$(kubesync local env{state.option})"; then: kubesync session --max-runtime 10; kubesync records'
    )
    return 0


def _print_addresses(stack: DemoStack, exports: Mapping[str, str]) -> None:
    remark(f"cluster {CLUSTER}: {stack.api_url}, domain {DOMAIN}, hosted zone {stack.zone_id} ({ZONE})")
    for line in export_lines(exports, "sh"):
        print_line(line)
    remark(
        "export these in another terminal, then run: kubesync session --max-runtime 10; kubesync records. Ctrl-C ends this"
    )


def _own_address() -> str:
    """This machine's address on the network, which containers can reach; 127.0.0.1 without a network."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect(("192.0.2.1", 9))  # RFC 5737: looks the route up, sends nothing
        except OSError:
            return "127.0.0.1"
        return str(probe.getsockname()[0])


@contextmanager
def _until_signalled() -> Iterator[threading.Event]:
    """An event that SIGINT, SIGTERM and SIGHUP set, however often they come."""
    end = threading.Event()

    def stop(_number: int, _frame: FrameType | None) -> None:
        end.set()

    with handled(stop, signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        yield end
