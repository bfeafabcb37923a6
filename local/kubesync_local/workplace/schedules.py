"""The schedules that start sessions on AWS, in EventBridge Scheduler: as ``template.yaml`` makes them."""

from collections.abc import Callable, Mapping
from typing import Any, Final

import boto3
from botocore.config import Config
from botocore.exceptions import BotoCoreError, ClientError

from kubesync.domain.errors import KubesyncError, UsageError

# The template gives them these names, in the default group, and those of shards after the first an end. A stack without resync schedules has
# only the watches. The alarm goes off where nobody is the master: the template switches its actions off with the schedules too.
_WATCH: Final = "kubesync-{}-watch{}"
_RESYNC: Final = "kubesync-{}-resync{}"
_ALARM: Final = "kubesync-{}-NoMaster{}"
_MOST_SHARDS: Final = 16
_CONFIG: Final = Config(connect_timeout=3, read_timeout=10, retries={"total_max_attempts": 3, "mode": "standard"})


class SchedulerError(KubesyncError):
    """A schedule could not be read or changed. The message says which, and why."""


class Schedules:
    """The schedules of one deployment, and the alarm that expects them to run.

    Raises:
        UsageError: tables are on a stand-in, which has no schedules.
    """

    def __init__(self, session: boto3.Session, deployment: str, environment: Mapping[str, str]) -> None:
        endpoint = environment.get("AWS_ENDPOINT_URL_DYNAMODB") or ""
        if endpoint.startswith("http://") and not environment.get("AWS_ENDPOINT_URL_SCHEDULER"):
            raise UsageError("no schedule starts sessions here: the tables are on a stand-in")
        self._session = session
        self._deployment = deployment
        self._region = session.region_name
        self._ends = [""]  # of the names of all shards that there are

    def states(self) -> dict[str, str]:
        """``ENABLED`` or ``DISABLED`` of each schedule that there is, by name.

        Raises:
            SchedulerError: EventBridge Scheduler refuses it, or cannot be reached.
        """
        client: Any = self._session.client("scheduler", config=_CONFIG)
        return {found["Name"]: found["State"] for found in self._all(client)}

    def switch(self, state: str) -> dict[str, str]:
        """Make the state of each schedule ``ENABLED`` or ``DISABLED``. What it was before, by name.

        Raises:
            SchedulerError: EventBridge Scheduler refuses it, or cannot be reached.
            UsageError: the deployment has no schedule here.
        """
        client: Any = self._session.client("scheduler", config=_CONFIG)
        # UpdateSchedule sets whatever a request leaves out back to its default: all that is known is sent again.
        # https://docs.aws.amazon.com/scheduler/latest/APIReference/API_UpdateSchedule.html
        fields = client.meta.service_model.operation_model("UpdateSchedule").input_shape.members
        before: dict[str, str] = {}
        for found in self._all(client):
            name = found["Name"]
            before[name] = found["State"]
            kept = {field: value for field, value in found.items() if field in fields and value is not None}
            if found["State"] != state:
                _done(f"schedule {name} cannot be changed", client.update_schedule, **{**kept, "State": state})
        if not before:
            names = " or ".join(form.format(self._deployment, "") for form in (_WATCH, _RESYNC))
            raise UsageError(
                f"there is no schedule {names} in {self._region}: check --deployment, --region and --profile"
            )
        return before

    def notify(self, *, on: bool) -> None:
        """Switch the actions of the alarm NoMaster, of each shard that ``switch`` has found. Raises SchedulerError."""
        client: Any = self._session.client("cloudwatch", config=_CONFIG)
        switch = client.enable_alarm_actions if on else client.disable_alarm_actions
        names = [_ALARM.format(self._deployment, end) for end in self._ends]
        _done(f"the actions of alarm {names[0]} cannot be switched", switch, AlarmNames=names)

    def _all(self, client: Any) -> list[dict[str, Any]]:
        self._ends = [""]
        read = [self._read(client, _WATCH, "")]
        while read[-1] is not None and len(self._ends) < _MOST_SHARDS:
            end = f"-shard{len(self._ends)}"
            read.append(self._read(client, _WATCH, end))
            self._ends += [end] if read[-1] is not None else []
        read += [self._read(client, _RESYNC, end) for end in self._ends]
        return [found for found in read if found is not None]

    def _read(self, client: Any, form: str, end: str) -> dict[str, Any] | None:
        name = form.format(self._deployment, end)
        found: dict[str, Any] | None = _done(f"schedule {name} cannot be read", client.get_schedule, Name=name)
        return found


def _done(failed: str, call: Callable[..., Any], **fields: Any) -> Any:
    """The answer; None if there is no such thing."""
    try:
        return call(**fields)
    except ClientError as error:
        code = error.response.get("Error", {}).get("Code", "unknown")
        if code == "ResourceNotFoundException":
            return None
        hint = ": docs/security.md has the policy" if code.startswith("AccessDenied") else ""
        raise SchedulerError(f"{failed}: {code}{hint}") from None
    except BotoCoreError as error:
        raise SchedulerError(f"{failed}: {' '.join(str(error).split())}") from None
