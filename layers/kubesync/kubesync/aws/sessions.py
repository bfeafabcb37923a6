"""Sessions of boto3 that take little memory: of botocore's models, texts for readers and the endpoints of other services are left out.

They are a third of what botocore reads, and would stay in memory as long as the process.
"""

import gzip
import json
import os
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

import boto3
import botocore.session
from botocore.loaders import JSONFileLoader, Loader, create_loader

# Endpoint prefixes. A service that is missing here is found by its own rules (``endpoint-rule-set``) all the same.
_SERVICES: Final = frozenset({"dynamodb", "route53", "secretsmanager", "ssm", "sts"})


class _ModelFiles(JSONFileLoader):
    """Reads botocore's files of data, and leaves out what kubesync does not need."""

    def load_file(self, file_path: str) -> Any:
        """Read one file. botocore gives its path without the ending, and tries another place if the answer is None: no such file."""
        # The first of the two files that exists is read. Without ``break``, neither does.
        for suffix, opened in ((".json", open), (".json.gz", gzip.open)):
            with suppress(FileNotFoundError), opened(f"{file_path}{suffix}", "rb") as file:
                found = json.load(file, object_pairs_hook=_without_texts)
                break
        else:
            return None
        # The file with the endpoints of all services of AWS: only those of ours are kept.
        if Path(file_path).name == "endpoints":
            for partition in found["partitions"]:
                services = partition["services"]
                partition["services"] = {name: services[name] for name in _SERVICES & services.keys()}
        return found


def aws_session() -> boto3.Session:
    """A session from the environment. boto3 reads only AWS_DEFAULT_REGION; every other SDK and Lambda use AWS_REGION."""
    core = botocore.session.Session()
    core.register_component("data_loader", lean_loader(core.get_config_variable("data_path")))
    return boto3.Session(region_name=os.environ.get("AWS_REGION") or None, botocore_session=core)


def lean_loader(search_path: str | None) -> Loader:
    """Make the loader that botocore reads its files of data with. It looks at ``search_path`` (AWS_DATA_PATH) too. None: not set."""
    loader = create_loader(search_path)
    loader.file_loader = _ModelFiles()
    return loader


def _without_texts(pairs: Sequence[tuple[str, Any]]) -> dict[str, Any]:
    """Make a JSON object without its ``documentation``. A member of a shape may have that name, too: it is no text, and stays."""
    return {name: value for name, value in pairs if name != "documentation" or not isinstance(value, str)}
