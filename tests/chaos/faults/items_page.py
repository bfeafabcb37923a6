"""Writes the table of items into the runbook: ``python -m chaos.faults.items_page``. Section 18 plays each row."""

from typing import Final

from chaos.faults.items_ends import ENDS, Ends
from harness.wire.template import ROOT
from page_parts import with_part

PAGE: Final = ROOT / "docs" / "runbook.md"
BEGIN: Final = "<!-- items: made by make causes -->\n"
END: Final = "<!-- end of the items -->\n"
_HEAD: Final = "| item | meanwhile | if it is deleted | if an older version comes back |\n|---|---|---|---|\n"
DO: Final = {
    Ends.ITSELF: "nothing",
    Ends.RESYNC: "nothing, or `kubesync resync`",
    Ends.RECOVER: "[recover](#recover)",
    Ends.BY_HAND: "[by hand](#by-hand)",
}
# Kinds of items that behave alike: how they are named, and what is to be seen until it is mended.
MEANWHILE: Final = {
    ("lease", "owner of the tables", "fence of a shard", "fence of a cluster"): (
        "the lease, the owner, a fence",
        "The running session ends with code 4. The next one takes over.",
    ),
    ("epoch counter",): ("the epoch counter (`lease/epoch`)", "The next session raises it above the fences."),
    ("checkpoint", "identity of a cluster", "errors of a listener"): (
        "a checkpoint, the identity or the errors of a cluster",
        "kubesync lists the cluster again, or reads events again. If the identity is missing, the next list sets it.",
    ),
    ("configuration",): (
        "the configuration of a cluster",
        "Its records and upstreams stay, and nobody watches it; an older version brings back older options. `cluster list` shows this.",
    ),
    ("inflight",): (
        "the inflight item of a zone (`inflight#…`)",
        "kubesync writes nothing to the zone: `ZoneBlocked`, and `status` names `recover`.",
    ),
    ("version of the named upstreams", "note for the composer"): (
        "the version of the named upstreams, a note for their composer",
        "Without the note, a named upstream may keep old nodes.",
    ),
    ("named upstream",): (
        "a named upstream",
        "Its nodes stay until the next full resync, which removes it from the table. `upstream list` does not show it.",
    ),
    ("resync request", "resync under way", "part of a resync", "result of a resync"): (
        "a request for a resync, its parts, its result",
        "The resync of a deleted request is not done; a command that waits says so after an hour. A request that comes back is done again.",
    ),
    ("access to a zone", "problem of a zone"): (
        "the role or the problem of a zone",
        "Without its role, access to a zone of another account is denied: `ZoneBlocked`. Register the role again.",
    ),
    ("key", "key, slice"): (
        "a key, or one of its slices",
        "Its record sets stay: `Conflict`. Upstreams may lack nodes until a list. If its Service then goes, a resync reports the sets: `forgotten`.",
    ),
    ("key of a removed cluster", "open mark of a removed cluster"): (
        "a key or an open mark of a cluster that is removed",
        "Nothing reads it. If somebody registers the cluster again, kubesync uses the item; a second removal deletes it.",
    ),
    ("upstream of a removed cluster",): (
        "an upstream of a cluster that is removed",
        "Proxies may read it. Only `kubesync upstreams` shows it.",
    ),
    ("service of an EndpointSlice",): (
        "the Service of an EndpointSlice",
        "If the slice changes its Service, the old one may keep its endpoints.",
    ),
    ("open mark", "promotion note"): (
        "an open mark, a promotion note",
        "Without it, nobody sends a change that a dead session left, or the new owner of a name does not publish it.",
    ),
    ("note of tombstones",): (
        "a note of tombstones",
        "Nothing. A note that comes back stays, and costs one read in each session.",
    ),
    ("names asked for",): ("a count of names", "The limit of the namespace is too high or too low."),
    ("claim", "claim of a set identifier", "waiter"): (
        "a claim, a place in line",
        "kubesync may refuse a name (`NameTaken`), or give it to a Service that does not want it any more.",
    ),
    ("upstream", "upstream, slice"): (
        "an upstream, or one of its slices",
        "Proxies read the old nodes, or keep what they have.",
    ),
    ("changes", "history of errors", "report of a session"): (
        "an item of the audit table",
        "`audit`, `errors` do not show it.",
    ),
}


def table() -> str:
    """A row for all kinds that behave alike."""
    return _HEAD + "".join(_row(kinds) for kinds in MEANWHILE)


def _row(kinds: tuple[str, ...]) -> str:
    name, meanwhile = MEANWHILE[kinds]
    most = [max(ENDS[kind][which] for kind in kinds) for which in (0, 1)]
    return f"| {name} | {meanwhile} | {DO[most[0]]} | {DO[most[1]]} |\n"


def page_with(page: str, made: str) -> str:
    """The page with this table between its markers."""
    return with_part(page, BEGIN, END, made)


def main() -> None:
    PAGE.write_text(page_with(PAGE.read_text(), table()))


if __name__ == "__main__":
    main()
