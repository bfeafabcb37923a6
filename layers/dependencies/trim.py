"""Removes from a built layer what no function uses: trim.py DIRECTORY

Of botocore's 400 services it keeps only those that kubesync calls. Data for all services (endpoints, partitions, retries)
stays. It also removes pip's scripts, and examples.
"""

import shutil
import sys
from pathlib import Path
from typing import Final

SERVICES: Final = frozenset({"dynamodb", "eks", "route53", "secretsmanager", "ssm", "sts"})


def trim(layer: Path) -> None:
    """Trim a layer.

    Raises:
        SystemExit: botocore has changed since this was written: a service is not where it should be.
    """
    data = layer / "botocore" / "data"
    missing = sorted(service for service in SERVICES if not (data / service).is_dir())
    if missing:
        sys.exit(f"{data} has no {', '.join(missing)}: has botocore moved its data?")
    for entry in sorted(data.iterdir()):
        if entry.is_dir() and entry.name not in SERVICES:
            shutil.rmtree(entry)
    for examples in sorted(data.rglob("examples-1.json*")):
        examples.unlink()
    shutil.rmtree(layer / "bin", ignore_errors=True)


if __name__ == "__main__":
    trim(Path(sys.argv[1]))
