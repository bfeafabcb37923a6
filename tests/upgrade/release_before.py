"""The release before: the one that this working tree replaces when it is deployed. Both run on one deployment's tables and zones.

After a release, name that release's commit here and empty ``ROWS_SINCE``: see CONTRIBUTING.md.
"""

import shutil
import subprocess
import tarfile
from io import BytesIO
from pathlib import Path
from typing import Final

import pytest

COMMIT: Final = "30a0a3ae9cf097ce7f2853e5bc15854905213e21"
"""Its full hash, in this repository's history."""

ROWS_SINCE: Final = frozenset(
    {
        "a CloudFront distribution: its health is not evaluated",
        "a CloudFront distribution, its health is to be evaluated",
        "a CloudFront distribution, with the option only",
        "a CloudFront distribution in a private zone",
        "a CloudFront distribution as a failover set",
        "a CloudFront distribution with a weight",
        "a global accelerator",
        "a VPC endpoint",
        "an API Gateway",
        "an API Gateway in an unknown region",
        "a name that only ends like CloudFront's",
        "A alone",
        "AAAA alone, in small letters",
        "a chosen hosted zone of the target",
        "a chosen hosted zone of the target, by its whole id",
        "a chosen hosted zone of the target, that is no id",
        "a chosen hosted zone of the target without alias has no effect",
        "an annotation that is neither true nor false",  # the same record set, and another message
        "a Service that is pinned to the private zone",
        "a Service that is pinned by a whole id",
        "a Service that is pinned to the shorter zone",
        "a Service that is pinned to a zone that does not hold its name",
        "a Service that is pinned to a zone that the cluster does not have",
        "the same, at a Service that holds its name",
        "other annotations do not matter",  # it keeps less of the Service
        "as much as the cluster allows",  # it has no longest TTL
        "more than the cluster allows",
        "the default of the cluster may be more than annotations may ask for",
    }
)
"""Titles of rows of tests/dns/cases.md that the release before does not know, or publishes in another way."""
SECTIONS_SINCE: Final = frozenset(
    {
        "Annotations that ask for something else",
        "Addresses that are not let in",
        "Networks of a cluster",
        "Ingress",
        "Names of an Ingress: `hostname` and `ingress-hostname-source`",
        "Targets of an Ingress: `target` and `alias`",
        "Aliases to names of the same zone",
        "Routing policies of an Ingress",
        "Classes of Ingresses: `--ingress-class`",
        "Names that Services and Ingresses want",
        "Other routing policies",
        "One name from several clusters: `--routing`",
    }
)
"""Headings of tests/dns/cases.md whose rows all are such."""

ROOT: Final = Path(__file__).resolve().parents[2]
_FOLDERS: Final = ("layers/kubesync", "local", "functions", "template.yaml")


def extract_release_before(folder: Path, commit: str = COMMIT) -> Path:
    """Write the code of the release before into a folder; returns the folder. Skips the test where the clone lacks the commit."""
    git = shutil.which("git")
    if git is None:
        pytest.skip("the release before is read from git, which is not on this machine")
    archive = subprocess.run(
        [git, "-C", str(ROOT), "archive", "--format=tar", commit, *_FOLDERS], capture_output=True, check=False
    )
    if archive.returncode:
        pytest.skip(f"this clone lacks commit {commit[:12]}, the release before: run `git fetch --unshallow`")
    with tarfile.open(fileobj=BytesIO(archive.stdout)) as tar:
        tar.extractall(folder, filter="data")
    return folder
