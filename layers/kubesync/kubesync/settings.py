"""Settings from ``KUBESYNC_*`` environment variables. boto3 reads AWS's own variables.

Every setting's name contains its unit. An invalid value raises a UsageError that names the variable.
"""

import os
from collections.abc import Mapping
from typing import Annotated, Self

from pydantic import BaseModel, ConfigDict, Field, StringConstraints, ValidationError, model_validator
from pydantic_core import ErrorDetails

from kubesync.domain.errors import UsageError

_PREFIX = "KUBESYNC_"
_LAMBDA_MEMORY = "AWS_LAMBDA_FUNCTION_MEMORY_SIZE"
_MEBIBYTE = 1024 * 1024
_NAMES_IN_WORDS = {
    "deployment": "1 to 24 lower-case letters, digits and hyphens, with no hyphen at either end",
    "shard": "1 to 8 lower-case letters and digits",
    "table_prefix": "at most 244 letters, digits, dots, hyphens and underscores",
}


class Settings(BaseModel):
    """See docs/configuration.md, which lists the same fields."""

    model_config = ConfigDict(frozen=True, extra="ignore", allow_inf_nan=False)

    deployment: Annotated[str, StringConstraints(pattern=r"^[a-z0-9]([a-z0-9-]{0,22}[a-z0-9])?$")] = "main"
    shard: Annotated[str, StringConstraints(pattern=r"^[a-z0-9]{1,8}$")] = "0"
    # How many masters there are: they share what the account may send to Route 53, and hand names on to each other's clusters.
    shards: int = Field(default=1, ge=1, le=16)
    # https://docs.aws.amazon.com/amazondynamodb/latest/APIReference/API_CreateTable.html: at most 255 with the suffix
    table_prefix: Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9_.-]{0,244}$")] = ""

    max_runtime_seconds: float = Field(default=840, gt=0, le=86_400)
    drain_margin_seconds: float = Field(default=15, gt=0)
    stand_by_seconds: float = Field(default=60, ge=0)
    window_seconds: float = Field(default=1.0, ge=0, le=60)

    lease_seconds: float = Field(default=15, gt=0)
    lease_renew_seconds: float = Field(default=5, gt=0)
    lease_write_seconds: float = Field(default=10, gt=0)
    control_seconds: float = Field(default=60, gt=0)

    batch_elements: int = Field(default=1000, ge=10, le=1000)
    batch_characters: int = Field(default=32_000, ge=1000, le=32_000)
    route53_requests_per_second: float = Field(default=5, gt=0)
    route53_request_burst: float = Field(default=25, ge=1)
    route53_changes_per_second: float = Field(default=1000, gt=0)

    connect_timeout_seconds: float = Field(default=5, gt=0)
    read_timeout_seconds: float = Field(default=30, gt=0)
    bookmark_interval_seconds: float = Field(default=60, gt=0)
    watch_timeout_seconds: int = Field(default=300, ge=1)
    # Half of client-go's: while a page is parsed, it takes about three times its bytes.
    page_limit: int = Field(default=250, ge=1)

    # What goes to CloudWatch: metrics of each cluster, and metrics that no alarm needs.
    cluster_metrics: bool = True
    dashboard_metrics: bool = True

    audit_retention_days: int = Field(default=90, ge=1)
    # Whether alarms have a topic. None: this process does not know.
    alarms_notify: bool | None = None
    # After how many minutes the alarm for a missing master goes off. Counts beside alarms_notify.
    no_master_minutes: int = Field(default=3, ge=1)
    # Lambda says how much memory the function has.
    memory_megabytes: int = Field(default=1024, ge=128)

    @model_validator(mode="after")
    def _check_lease(self) -> Self:
        """A master must have time to renew before it has to stop writing, and stop before the lease can expire (I2)."""
        if not self.lease_renew_seconds < self.lease_write_seconds <= self.lease_seconds:
            raise ValueError(
                "it must be KUBESYNC_LEASE_RENEW_SECONDS < KUBESYNC_LEASE_WRITE_SECONDS <= KUBESYNC_LEASE_SECONDS"
            )
        return self

    @property
    def tables(self) -> str:
        """Prefix of the tables' names."""
        return self.table_prefix or f"kubesync-{self.deployment}"

    @property
    def audit_retention_seconds(self) -> int:
        """How long audit entries and results of resyncs stay."""
        return self.audit_retention_days * 86_400

    @property
    def list_room_bytes(self) -> int:
        """The memory for all lists that are read and not recorded yet, in bytes. Recording a list takes about as much again."""
        return self.memory_megabytes * _MEBIBYTE // 48

    @property
    def window_bytes(self) -> int:
        """The memory for events of one cluster that wait to be recorded, and the same again for those that are being recorded, in bytes."""
        return self.memory_megabytes * _MEBIBYTE // 16

    @property
    def cached_keys(self) -> int:
        """How many Service keys of all clusters are kept in memory: about 4 KB each."""
        return self.memory_megabytes * 12

    @property
    def page_bytes(self) -> int:
        """The most bytes of JSON in one page of a list."""
        return min(4 * _MEBIBYTE, self.list_room_bytes // 4)

    @property
    def list_bytes(self) -> int:
        """The longest list that the memory has room for, in bytes of what is kept; of a list without pages, in bytes of JSON."""
        return min(512 * _MEBIBYTE, self.memory_megabytes * _MEBIBYTE // 4)

    @classmethod
    def from_environment(cls, environment: Mapping[str, str] | None = None, *, shard: str = "") -> Self:
        """Read the environment. Empty variables count as unset. ``shard``: of one invocation; wins over the environment.

        Raises:
            UsageError: a value is not valid.
        """
        source = os.environ if environment is None else environment
        values = {
            name: source[_PREFIX + name.upper()] for name in cls.model_fields if source.get(_PREFIX + name.upper())
        }
        if shard:
            values["shard"] = shard
        if source.get(_LAMBDA_MEMORY):
            values.setdefault("memory_megabytes", source[_LAMBDA_MEMORY])
        try:
            return cls.model_validate(values)
        except ValidationError as invalid:
            first = invalid.errors()[0]
            if not first["loc"]:  # the error concerns several settings
                raise UsageError(first["msg"].removeprefix("Value error, ")) from None
            name = _PREFIX + str(first["loc"][0]).upper()
            raise UsageError(f"{name}={first['input']!r} is not valid: {_in_words(first)}") from None


def _in_words(error: ErrorDetails) -> str:
    """An error about a setting as one line, which says what values are valid."""
    limits = error.get("ctx", {})
    match error["type"]:
        case "string_pattern_mismatch":
            return _NAMES_IN_WORDS[str(error["loc"][0])]
        case "float_parsing" | "finite_number":
            return "give a number"
        case "int_parsing" | "int_from_float" | "int_parsing_size":
            return "give a whole number"
        case "greater_than":
            return f"give more than {limits['gt']:g}"
        case "greater_than_equal":
            return f"give at least {limits['ge']:g}"
        case "less_than_equal":
            return f"give at most {limits['le']:g}"
    return error["msg"]
