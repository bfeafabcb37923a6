"""What kind of write a call is: the words of the commit protocol, told from the items that it names."""

from collections.abc import Sequence
from typing import Final, cast

from kubesync.aws.dynamodb.store import AUDIT, CONTROL, STATE, UPSTREAMS, Action, Check, Delete, Put
from kubesync.aws.tables.items import unpack

# In the order of a session.
KINDS: Final = (
    "deployment bound",
    "epoch drawn",
    "lease",
    "fence raised",
    "record",
    "checkpoint alone",
    "batch announced",
    "batch sent",
    "journal swapped",
    "batch closed",
    "batch cleared",
    "keys swept",
    "upstreams composed",
    "request answered",
    "cluster forgotten",
    "zone's problem noted",
    "error noted",
)
SENT, SWAPPED, RECORD, COMPOSED = "batch sent", "journal swapped", "record", "upstreams composed"


def kind_of(actions: Sequence[Action]) -> str:
    """The kind of a write to DynamoDB; empty: one that no list of ours knows."""
    written = [action for action in actions if not isinstance(action, Check)]
    control = [(a.key.partition, str(a.key.sort)) for a in written if a.key.table == CONTROL]
    outputs = any(action.key.table in (STATE, UPSTREAMS) for action in written)
    if any(a.key.partition.startswith("named-marks#") and isinstance(a, Delete) for a in written):
        return "upstreams composed"
    if any(partition.startswith("inflight#") for partition, _ in control):
        return (
            "batch announced" if any(isinstance(a, Put) and a.item.get("batch") for a in written) else "batch cleared"
        )
    of_one_item = {
        "deployment": "deployment bound",
        "epoch": "epoch drawn",
        "lease": "lease",
    }
    if control and all(sort == "fence" for _, sort in control):
        return "fence raised"
    if len(written) == 1 and control and control[0][1] in of_one_item:
        return of_one_item[control[0][1]]
    if any(partition.startswith("resync#") for partition, _ in control):
        return "request answered"
    if any(partition == "clusters" for partition, _ in control):
        return "cluster forgotten"
    if any(sort.startswith("errors#") for _, sort in control):
        return "error noted"
    if any(partition.startswith("zones#") for partition, _ in control):
        return "zone's problem noted"
    if not outputs and control and all(sort.startswith(("checkpoint#", "identity")) for _, sort in control):
        return "checkpoint alone"
    if any(_tells_of_records(action) for action in written):
        return "batch closed"
    if outputs and all(isinstance(action, Delete) for action in written):
        return "keys swept"
    return "record" if outputs else ""


def _tells_of_records(action: Action) -> bool:
    """Whether it is an audit item that says which record sets were changed."""
    if action.key.table != AUDIT or not isinstance(action, Put) or "body" not in action.item:
        return False
    return any(str(row[0]).startswith("record ") for row in unpack(cast("str | bytes", action.item["body"])))
