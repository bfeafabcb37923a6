"""What EKS knows about a cluster: its API server's address and CA."""

import base64
import re
from dataclasses import dataclass
from typing import Any, Final

import boto3
from botocore.config import Config
from botocore.exceptions import BotoCoreError, ClientError

from kubesync.aws.secrets.issued_tokens import AssumedRole
from kubesync.domain.errors import KubesyncError, UsageError

_ARN: Final = re.compile(r"arn:[^:]+:eks:(?P<region>[^:]+):\d+:cluster/(?P<name>.+)")


class EksError(KubesyncError):
    """EKS could not be reached, or the cluster is not ready. The message says what to do."""


@dataclass(frozen=True, slots=True)
class EksCluster:
    """``ca_pem`` is the cluster's own CA."""

    server: str
    ca_pem: str


def eks_region(eks: str) -> str | None:
    """The region in an ARN; None: the session's region."""
    arn = _ARN.fullmatch(eks)
    return arn["region"] if arn else None


def look_up_eks(session: boto3.Session, eks: str, role: AssumedRole | None = None) -> EksCluster:
    """Call ``eks:DescribeCluster``.

    Args:
        eks: the cluster's name (in the session's region), or its ARN.
        role: makes the call instead of the session's own identity.

    Raises:
        UsageError: there is no such cluster.
        EksError: EKS could not be reached, or the cluster has no address yet.
        DeniedError: the role cannot be assumed.
    """
    arn = _ARN.fullmatch(eks)
    name, region = (arn["name"], arn["region"]) if arn else (eks, None)
    config = Config(connect_timeout=3, read_timeout=10, retries={"total_max_attempts": 3, "mode": "standard"})
    try:
        client: Any = (
            session.client("eks", region_name=region, config=config)
            if role is None
            else role.client("eks", config=config)
        )
        cluster = client.describe_cluster(name=name)["cluster"]
    except ClientError as error:
        code = error.response.get("Error", {}).get("Code", "unknown")
        if code == "ResourceNotFoundException":
            raise UsageError(
                f"EKS has no cluster {name} here: check the name and AWS_REGION, or give its ARN"
            ) from None
        if code == "InvalidParameterException":
            raise UsageError(f"--eks {eks!r} is not the name or ARN of an EKS cluster") from None
        raise EksError(f"EKS cannot describe cluster {name}: {code}; give --server and --ca-file instead") from None
    except BotoCoreError as error:
        why = " ".join(str(error).split())
        raise EksError(f"EKS cannot describe cluster {name}: {why}") from None
    server, ca_data = cluster.get("endpoint"), cluster.get("certificateAuthority", {}).get("data")
    if not server or not ca_data:
        raise EksError(f"EKS cluster {name} has no address yet (it is {cluster.get('status', 'unknown')}): try later")
    return EksCluster(server, base64.b64decode(ca_data).decode())
