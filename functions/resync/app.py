"""A full resync of one cluster or of all, or a dry run of it. People invoke it. Events: ``events/*.json``.

Importing this module connects to nothing: the sockets of a frozen and thawed environment are dead.
"""

from contextlib import ExitStack
from typing import Any, Final

from aws_lambda_powertools import Logger
from aws_lambda_powertools.utilities.typing import LambdaContext

from kubesync.aws.sessions import aws_session
from kubesync.bootstrap.application import Application
from kubesync.bootstrap.shutdown import ended_by_sigterm, register_for_sigterm
from kubesync.log import ascii_json
from kubesync.operations.resync_invocation import ResyncEvent
from kubesync.session.session import Session
from kubesync.settings import Settings
from kubesync.telemetry.metrics import MetricsPublisher, embedded

logger = Logger(service="kubesync", json_serializer=ascii_json)
register_for_sigterm()
# One for all invocations of this process. Each invocation makes its own clients and connections.
_session = aws_session()

# Time reserved for the answer itself if a master did not answer.
_MARGIN_SECONDS: Final = 10.0


@logger.inject_lambda_context(clear_state=True)
def handler(event: dict[str, Any], context: LambdaContext) -> dict[str, Any]:
    """Have the running master do it, or do it here. The report shows the errors of single clusters.

    Raises:
        UsageError: the event is not valid; one line says why.
        KubesyncError: there is no report.
    """
    wanted = ResyncEvent.parse(event)
    settings = Settings.from_environment(shard=wanted.shard)
    metrics = MetricsPublisher(settings.deployment, embedded(settings), shard=wanted.shard)
    with ExitStack() as stack:

        def begin(session: Session) -> None:
            session.on_beat, session.on_resync = metrics.beat, metrics.resync_ended
            stack.enter_context(ended_by_sigterm(session))

        invocation = Application(settings, session=_session).resync_invocation(
            wanted,
            remaining_seconds=lambda: context.get_remaining_time_in_millis() / 1000 - _MARGIN_SECONDS,
            on_session=begin,
        )
        return invocation.run()
