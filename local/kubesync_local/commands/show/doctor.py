"""``kubesync doctor``: tests a deployment on AWS from here, and by asking its function from the function's own network."""

import argparse
import os

from kubesync_local.check.deployment import DeploymentCheck
from kubesync_local.check.lines import show
from kubesync_local.check.step import Result, Step
from kubesync_local.terminal.output import counted, print_document, remark
from kubesync_local.workplace.schedules import Schedules
from kubesync_local.workplace.workplace import Workplace


def run(arguments: argparse.Namespace) -> int:
    """Show each step when it is done. Returns 1 if one failed."""
    work = Workplace()
    deployment = work.settings.deployment
    done: list[Step] = []
    for step in DeploymentCheck(work, Schedules(work.boto, deployment, os.environ)).run():
        done.append(step)
        if arguments.output == "table":
            show(step)
    bad = [step for step in done if step.result is Result.FAILED]
    if arguments.output != "table":
        document = {"deployment": deployment, "ok": not bad, "steps": [step.document() for step in done]}
        print_document(document, arguments.output)
    elif bad:
        remark(f"deployment {deployment}: {counted(len(bad), 'step')} failed")
    else:
        remark(f"deployment {deployment}: all tests passed")
    return 1 if bad else 0
