"""The scheduled function: one bounded session. The next invocation stands by and takes over when this one ends.

Importing this module connects to nothing: the sockets of a frozen and thawed environment are dead.
"""

from typing import Any

from aws_lambda_powertools import Logger
from aws_lambda_powertools.utilities.typing import LambdaContext

from kubesync.aws.sessions import aws_session
from kubesync.bootstrap.application import Application
from kubesync.bootstrap.reach import reach
from kubesync.bootstrap.shutdown import ended_by_sigterm, register_for_sigterm
from kubesync.log import ascii_json
from kubesync.session.health import harmless
from kubesync.settings import Settings
from kubesync.telemetry.metrics import MetricsPublisher, embedded

logger = Logger(service="kubesync", json_serializer=ascii_json)
register_for_sigterm()
# One for all invocations of this process. Each invocation makes its own clients and connections.
_session = aws_session()


@logger.inject_lambda_context(clear_state=True)
def handler(event: object, context: LambdaContext) -> dict[str, Any]:
    """Run a session until the invocation's time runs out. Codes 4 and 5 are not failures. Schedules of further shards say ``shard``.

    ``check``: run none, and say what this function reaches. Whatever else somebody sends starts a session.

    Raises:
        KubesyncError: settings are not valid, or the tables cannot be used. The invocation then counts as failed.
    """
    asked = event if isinstance(event, dict) else {}
    shard = str(asked.get("shard", ""))
    settings = Settings.from_environment(shard=shard)
    application = Application(settings, session=_session)
    if asked.get("check") is True:
        return reach(application)
    metrics = MetricsPublisher(settings.deployment, embedded(settings), shard=shard)
    session = application.new_session()
    session.on_beat, session.on_resync = metrics.beat, metrics.resync_ended
    with ended_by_sigterm(session):
        report = session.run(remaining_seconds=lambda: context.get_remaining_time_in_millis() / 1000)
    with harmless("metrics of the session's end cannot be written"):  # else its invocation counts as failed
        metrics.ended(report)
    return report.document()
