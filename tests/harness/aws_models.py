"""botocore reads its service models once in a test process, not once for each boto3 session."""

from functools import cache

import botocore.session
from botocore.loaders import Loader, create_loader

from kubesync.aws import sessions


@cache
def _shared_loader(search_path: str | None = None) -> Loader:
    return create_loader(search_path)


def share_models() -> None:
    """Let every boto3 session use one loader.

    A command starts with a session of its own, which parses some megabytes of JSON: most of what a command costs when it
    runs within a test. Models are only read; one session already shares them among all its clients.
    """
    botocore.session.create_loader = _shared_loader
    sessions.lean_loader = cache(sessions.lean_loader)
