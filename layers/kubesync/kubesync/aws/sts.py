"""AWS STS: temporary credentials of roles, for clusters' tokens and for hosted zones in other accounts."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from botocore.config import Config
from botocore.exceptions import ClientError

STS_CONFIG: Final = Config(connect_timeout=2, read_timeout=5, retries={"total_max_attempts": 2, "mode": "standard"})


@dataclass(frozen=True, slots=True)
class RoleCredentials:
    """Temporary credentials, valid until ``expires_at`` (epoch seconds). ``options``: as a boto3 session takes them for a client. Never
    shown (I8)."""

    options: Mapping[str, Any] = field(repr=False)
    expires_at: float


def assume(sts: Any, role: str, external_id: str, session_name: str) -> RoleCredentials:
    """Credentials of a role (ARN).

    Args:
        external_id: what the role's trust policy asks for; empty: nothing.
        session_name: appears in the CloudTrail of the role's account.

    Raises:
        BotoCoreError, ClientError: whoever catches it raises ``from None``: it may show a request with its signature (I8).
    """
    request = {"RoleArn": role, "RoleSessionName": session_name}
    if external_id:
        request["ExternalId"] = external_id
    given = sts.assume_role(**request)["Credentials"]
    options = {
        "aws_access_key_id": given["AccessKeyId"],
        "aws_secret_access_key": given["SecretAccessKey"],
        "aws_session_token": given["SessionToken"],
    }
    return RoleCredentials(options, given["Expiration"].timestamp())


def why_not_assumed(error: Exception, role: str, external_id: str) -> str:
    """What a person does about an error of ``assume``, in one line."""
    return (
        f"role {role} cannot be assumed ({code_of(error)}): allow sts:AssumeRole on it to kubesync's role, and let its "
        "trust policy name that role" + (" and the external id" if external_id else "")
    )


def code_of(error: Exception) -> str:
    """The code of an answer of AWS, or the class of the error where there was none."""
    code = error.response.get("Error", {}).get("Code") if isinstance(error, ClientError) else None
    return code or type(error).__name__
