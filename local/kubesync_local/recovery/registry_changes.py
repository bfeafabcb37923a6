"""Change batches that delete external-dns' TXT record sets of names that moved. kubesync writes them to files, and sends none."""

import json
from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby
from operator import itemgetter
from pathlib import Path
from typing import Any, Final

from kubesync.aws.route53.wire import to_route53
from kubesync.domain.errors import UsageError

# https://docs.aws.amazon.com/Route53/latest/DeveloperGuide/DNSLimitations.html: 1,000 elements and 32,000 characters of Value.
MAX_ELEMENTS: Final = 1_000
MAX_CHARACTERS: Final = 32_000


def empty_folder(folder: str) -> Path:
    """The folder for the files, not made yet. Raises UsageError if there is something in it: old batches must not mix with new."""
    path = Path(folder)
    if path.exists() and not (path.is_dir() and not any(path.iterdir())):
        raise UsageError(f"--registry-changes: {folder} must be a folder that is empty or does not exist")
    return path


def write_changes(folder: Path, records: Sequence[Mapping[str, Any]]) -> tuple[list[Path], list[str]]:
    """Write one file for each batch, ``<zone id>-<number>.json``, in the form of ``aws route53 change-resource-record-sets``.

    Args:
        records: the rows ``registry_records`` of a recovery's report. Only sets all of whose names kubesync holds are deleted.

    Returns:
        The files, and the names of those sets that a person must remove: they hold values of others, or have a routing policy
        that kubesync cannot write.
    """
    moved = [each for each in records if each["held"]]
    by_hand = [each for each in moved if not each["alone"] or {"foreign_form", "routing"} & each["stands"].keys()]
    deletable = sorted((each for each in moved if each not in by_hand), key=itemgetter("zone"))
    files = []
    for zone, of_zone in groupby(deletable, key=itemgetter("zone")):
        for number, changes in enumerate(_batches(map(_deletion, of_zone)), start=1):
            folder.mkdir(parents=True, exist_ok=True)
            files.append(folder / f"{zone}-{number}.json")
            files[-1].write_text(json.dumps({"Changes": changes}, indent=2) + "\n")
    return files, [each["name"] for each in by_hand]


def _deletion(row: Mapping[str, Any]) -> dict[str, Any]:
    record_set = {
        "Name": to_route53(row["name"]),
        "Type": row["type"],
        **({"SetIdentifier": row["identifier"], "Weight": row["stands"]["weight"]} if "identifier" in row else {}),
        "TTL": row["stands"]["ttl"],
        "ResourceRecords": [{"Value": value} for value in row["stands"]["values"]],
    }
    return {"Action": "DELETE", "ResourceRecordSet": record_set}


def _batches(changes: Iterator[dict[str, Any]]) -> Iterator[list[dict[str, Any]]]:
    batch: list[dict[str, Any]] = []
    characters = 0
    for change in changes:
        size = sum(len(record["Value"]) for record in change["ResourceRecordSet"]["ResourceRecords"])
        if batch and (len(batch) == MAX_ELEMENTS or characters + size > MAX_CHARACTERS):
            yield batch
            batch, characters = [], 0
        batch.append(change)
        characters += size
    if batch:
        yield batch
