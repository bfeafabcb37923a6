"""Where a command looked for its tables: the end of a message about tables that are missing or cannot be reached."""

import os
import re
from urllib.parse import urlsplit

from kubesync.domain.errors import StoreUnavailableError, UsageError
from kubesync.settings import Settings

_LOOPBACK = ("127.0.0.1", "localhost", "::1")


def located(error: StoreUnavailableError) -> StoreUnavailableError:
    """The error with deployment, prefix, region and endpoint, and what to do about a stand-in that does not run."""
    try:
        settings = Settings.from_environment()
    except UsageError:
        return error
    said = str(error)
    region = _region()
    endpoint = os.environ.get("AWS_ENDPOINT_URL_DYNAMODB") or os.environ.get("AWS_ENDPOINT_URL") or _of_region(region)
    at = f" at {_without_credentials(endpoint)}" if endpoint else ""
    looked = f"looked for deployment {settings.deployment} (tables {settings.tables}-*){f' in {region}' if region else ''}{at}"
    hint = ""
    if endpoint and "cannot be reached" in said and urlsplit(endpoint).hostname in _LOOPBACK:
        hint = "; is `kubesync local up` running?"
    elif re.search(r"failed: \d{3}$", said):  # an answer without an error code
        hint = "; is that the address of DynamoDB?"
    return StoreUnavailableError(f"{said}; {looked}{hint}")


def _region() -> str:
    given = os.environ.get("AWS_REGION") or os.environ.get("AWS_DEFAULT_REGION")
    if given:
        return given
    import boto3

    return str(boto3.Session().region_name or "")


def _of_region(region: str) -> str:
    """Where the AWS SDK finds DynamoDB by itself. Empty: it cannot say."""
    import boto3
    from botocore.exceptions import BotoCoreError

    try:
        return str(boto3.Session(region_name=region or None).client("dynamodb").meta.endpoint_url)
    except (BotoCoreError, ValueError):
        return ""


def _without_credentials(url: str) -> str:
    parts = urlsplit(url)
    return parts._replace(netloc=parts.netloc.rpartition("@")[2], query="").geturl()
