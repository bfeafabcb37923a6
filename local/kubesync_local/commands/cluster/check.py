"""``kubesync cluster check``: tests everything that a cluster needs, from this machine."""

import argparse
from collections.abc import Iterator
from typing import Final

from kubesync.aws.tables.control.clusters import ClusterConfig
from kubesync.kubernetes.ports import ReflectorPolicy
from kubesync_local.check.lines import show
from kubesync_local.check.server import ServerCheck
from kubesync_local.check.step import Result, Step
from kubesync_local.check.zones import ZoneCheck
from kubesync_local.terminal.output import counted, print_document, remark
from kubesync_local.workplace.readings import ListenerReadings
from kubesync_local.workplace.workplace import Workplace

_POLICY: Final = ReflectorPolicy(connect_timeout=3, read_timeout=5)


def run(arguments: argparse.Namespace) -> int:
    """Show each step when it is done. Returns 1 if one failed."""
    work = Workplace()
    [config] = work.chosen(arguments.name)
    if config.deleting:
        remark(f"note: cluster {config.name} is being removed")
    done: list[Step] = []
    for step in _steps(config, work):
        done.append(step)
        if arguments.output == "table":
            show(step)
    bad = [step for step in done if step.result is Result.FAILED]
    if arguments.output != "table":
        print_document(
            {"cluster": config.name, "ok": not bad, "steps": [step.document() for step in done]}, arguments.output
        )
    elif bad:
        remark(f"cluster {config.name}: {counted(len(bad), 'step')} failed")
    else:
        remark(f"cluster {config.name}: all tests passed")
    return 1 if bad else 0


def _steps(config: ClusterConfig, work: Workplace) -> Iterator[Step]:
    application = work.application
    access = application.access()
    served = ListenerReadings(work.store).checkpoints(config.name)
    yield from ServerCheck(config, lambda: access(config, _POLICY), application.scheduler, served).run()
    yield from ZoneCheck(config, work.store, application.zone_accounts(), work.settings).run()
