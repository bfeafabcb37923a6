"""``kubesync session``: one session in this process."""

import argparse

from kubesync.domain.errors import ErrorCode
from kubesync_local.sessions.ending import ended_by_signals
from kubesync_local.sessions.live import showing_progress
from kubesync_local.terminal.output import print_json, remark
from kubesync_local.workplace.workplace import NO_CLUSTERS, Workplace


def run(arguments: argparse.Namespace) -> int:
    """Run it and print the report. Returns 0 where its time was up or another session is the master, else 1."""
    settings = {} if arguments.max_runtime is None else {"max_runtime_seconds": arguments.max_runtime}
    work = Workplace(**settings)
    if not work.clusters.all():
        remark(NO_CLUSTERS)  # no error: one may be registered while the session runs
    application = work.application  # loaded before the live view: a signal meanwhile ends the process at once
    with showing_progress(verbose=arguments.verbose) as progress:
        session = application.new_session(progress)
        with ended_by_signals(lambda: session):
            report = session.run()
    print_json(report.document())
    stood_aside = report.code == ErrorCode.NOT_MASTER and report.epoch == 0
    if report.code == ErrorCode.MAX_RUNTIME:
        remark("the session ended normally: its time was up")
    elif stood_aside:
        remark(f"the session ended normally: {report.message}")
    else:
        remark(f"the session ended: {report.ended} {report.message}".rstrip())
    return 0 if stood_aside or report.code == ErrorCode.MAX_RUNTIME else 1
