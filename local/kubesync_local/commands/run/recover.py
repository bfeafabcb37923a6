"""``kubesync recover``: takes over existing record sets, such as after tables were lost. A dry run unless --apply is given."""

import argparse
from dataclasses import replace
from pathlib import Path
from typing import Any

from kubesync.aws.tables.state import state_key
from kubesync.domain.errors import ErrorCode, KubesyncError, UsageError
from kubesync.domain.objects import ObjectKey
from kubesync_local.commands.run.recover_rows import COLUMNS, RECORD_COLUMNS, record_rows_of, rows_of, unwanted_only
from kubesync_local.plans.plan import some
from kubesync_local.recovery.conflict_words import OTHER_FORM
from kubesync_local.recovery.recovery import KINDS, RecoveryRequest
from kubesync_local.recovery.registry_changes import empty_folder, write_changes
from kubesync_local.recovery.txt_registry import Affixes
from kubesync_local.sessions.ending import ended_by_signals
from kubesync_local.sessions.live import showing_progress
from kubesync_local.terminal.asking import can_ask, confirm
from kubesync_local.terminal.output import new_console, print_document, print_table, remark
from kubesync_local.workplace.looking import Look
from kubesync_local.workplace.people import note
from kubesync_local.workplace.workplace import NO_CLUSTERS, Workplace

_COUNTED = {
    "claimed": "to take over",
    "unproven": "as wanted in a zone that kubesync has not written yet",
    "differing": "in another form",
    "unwanted": "that no cluster wants",
}
_NAMED = 3
_CHECK = "check them with `kubesync plan`"


class RecoverError(KubesyncError):
    """Nothing was recovered. The message says why."""


def run(arguments: argparse.Namespace) -> int:
    """Recover, or show what would be recovered. Returns 1 if a cluster could not be recovered."""
    work = Workplace()
    if not work.chosen(arguments.cluster):
        raise UsageError(NO_CLUSTERS)
    folder = _folder_for_changes(arguments)
    names = arguments.name.lower().rstrip(".")
    affixes = Affixes(arguments.txt_prefix, arguments.txt_suffix, arguments.txt_wildcard_replacement)
    request = RecoveryRequest(arguments.cluster, not arguments.apply, names, affixes, arguments.txt_owner_id)
    if arguments.apply and not arguments.yes and can_ask():
        _agree(_recovered(work, replace(request, dry_run=True)))
    found = _recovered(work, request)
    for cluster in found["clusters"]:
        if not found["dry_run"] and "error" not in cluster:
            taken = len(cluster["claimed"])
            note(work, cluster["cluster"], "recover --apply", [("record sets taken over", None, str(taken))])
        remark(_summary(found, cluster))
        for resource, reason in cluster.get("held", {}).items():
            remark(f"{cluster['cluster']}: deletions of {resource} are held back: {reason}; {_CHECK}")
    if not found["dry_run"] and (line := why_nothing_taken(found)):
        remark(line)
    for line in _registry_lines(found):
        remark(line)
    if under_way := found.get("under_way"):
        more = f" and {len(under_way) - _NAMED} more" if len(under_way) > _NAMED else ""
        remark(f"left out, because a session is writing them: {', '.join(under_way[:_NAMED])}{more}; run it again")
    if found["dry_run"]:
        remark("nothing was changed: this was a dry run; --apply recovers")
    if folder is not None:
        _write_changes(folder, found)
    if arguments.output != "table":
        print_document(found, arguments.output)
    else:
        if rows := rows_of(found):
            print_table(rows, COLUMNS, names=2)
        if records := record_rows_of(found):
            print_table(records, RECORD_COLUMNS, "TXT records of external-dns' registry")
    return 1 if any("error" in cluster for cluster in found["clusters"]) else 0


def _looked_at(work: Workplace, request: RecoveryRequest) -> dict[str, Any]:
    """The report of a dry run. It works beside a master: what that one is just writing is left out, and named in ``under_way``."""
    look = Look(work)
    with showing_progress(compares=True) as progress:
        session = look.session(progress)
        with ended_by_signals(lambda: session):
            report = session.run(recovery=request)
    if not report.recoveries:
        raise RecoverError(f"nothing was compared: {report.ended} {report.message}".rstrip())
    found: dict[str, Any] = report.recoveries[0]
    rows = [row for cluster in found["clusters"] for kind in KINDS for row in cluster.get(kind, ()) if row["service"]]
    keys = {row["service"]: state_key(ObjectKey.parse(row["service"])) for row in rows}
    changed = look.store.changed_since(list(keys.values())) if keys else set()
    under_way = {service for service, key in keys.items() if key in changed}
    for cluster in found["clusters"]:
        for kind in KINDS:
            if kind in cluster:
                cluster[kind] = [row for row in cluster[kind] if row["service"] not in under_way]
    return {**found, "under_way": sorted(under_way)}


def _recovered(work: Workplace, request: RecoveryRequest) -> dict[str, Any]:
    if request.dry_run:
        return _looked_at(work, request)
    application = work.application  # loaded before the live view: a signal meanwhile ends the process at once
    with showing_progress(compares=request.dry_run) as progress:
        session = application.new_session(progress)
        with ended_by_signals(lambda: session):
            report = session.run(recovery=request)
    if not report.recoveries:
        # Whoever was the master has lost the lease, or met fences that rise again and again: a pause changes neither.
        other = report.code == ErrorCode.NOT_MASTER and not report.epoch
        hint = "; let the session end, or pause the schedule, and try again" if other else "; run it again"
        raise RecoverError(f"nothing was recovered: {report.ended} {report.message}".rstrip() + hint)
    found: dict[str, Any] = report.recoveries[0]
    return found


def _agree(found: dict[str, Any]) -> None:
    """Show what a recovery would take over, and ask. Raises DeclinedError."""
    if rows := rows_of(found):
        print_table(rows, COLUMNS, names=2, console=new_console(stderr=True))
    for cluster in found["clusters"]:
        remark(_summary(found, cluster))
    taken = [row for cluster in found["clusters"] for row in cluster.get("claimed", [])]
    zones = {row["zone"] for row in taken}
    if taken:
        confirm(f"Take over {some(len(taken), 'record set')} in {some(len(zones), 'zone')}?")
    else:
        confirm("Take over no record set, and only raise the epoch above the zones' journals?")


def _summary(found: dict[str, Any], cluster: dict[str, Any]) -> str:
    if "error" in cluster:
        return f"{cluster['cluster']}: failed: {cluster['error']}"
    numbers = {kind: len(cluster[kind]) for kind in _COUNTED} | {"unwanted": unwanted_only(found, cluster)}
    # Zones that were never written are rare: shown only if there is one.
    shown = ", ".join(
        f"{numbers[kind]} {text}" for kind, text in _COUNTED.items() if numbers[kind] or kind != "unproven"
    )
    return f"{cluster['cluster']}: record sets: {shown}"


def why_nothing_taken(found: dict[str, Any]) -> str:
    """Why a recovery took nothing over, in one line. Empty: it took something, or a cluster failed."""
    clusters = found["clusters"]
    if any("error" in cluster or cluster["claimed"] for cluster in clusters):
        return ""
    differing = sum(len(cluster["differing"]) for cluster in clusters)
    unproven = sum(len(cluster["unproven"]) for cluster in clusters)
    reasons = []
    if differing:
        have = "has another form than is wanted" if differing == 1 else "have another form than is wanted"
        reasons.append(f"{some(differing, 'record set')} {have} ({OTHER_FORM})")
    if unproven:
        are = "is" if unproven == 1 else "are"
        reasons.append(
            f"{some(unproven, 'record set')} {are} as wanted in a zone that kubesync has not written yet (give it a first name there: "
            "docs/migration.md, step 1)"
        )
    return f"nothing was taken over: {'; '.join(reasons) or 'no foreign record set stands where a Service wants one'}"


def _registry_lines(found: dict[str, Any]) -> list[str]:
    """What a person must know of external-dns' registry before switching external-dns off."""
    lines = []
    for each in found["registries"]:
        zone = f"zone {each['name']} ({each['zone']})"
        if each["unreadable"]:
            lines.append(
                f"{zone}: external-dns' registry is encrypted and unreadable (TXT records: {each['unreadable']}): "
                "nothing is concluded from it"
            )
        if each["unmatched"]:
            lines.append(
                f"{zone}: TXT records of external-dns that fit no record set: {each['unmatched']}; "
                "give --txt-prefix and the like as in external-dns"
            )
        if each["unlisted"]:
            names = ", ".join(each["unlisted"])
            lines.append(f"{zone}: also a zone of {names}, not listed in this run: what they want is as last seen")
    if found["registered"]:
        lines.append(
            f"record sets that external-dns keeps and kubesync does not want: {len(found['registered'])}; decide about each "
            "before you switch external-dns off (docs/migration.md, step 2)"
        )
    return lines


def _folder_for_changes(arguments: argparse.Namespace) -> Path | None:
    if not arguments.registry_changes:
        return None
    if arguments.apply:
        raise UsageError("--registry-changes shows what is held already: run it after --apply, in a command of its own")
    return empty_folder(arguments.registry_changes)


def _write_changes(folder: Path, found: dict[str, Any]) -> None:
    files, by_hand = write_changes(folder, found["registry_records"])
    for file in files:
        remark(f"written: {file}")
    if not files:
        remark("no TXT record of external-dns is only about record sets that kubesync holds: no file was written")
    for name in by_hand:
        remark(f"remove external-dns' value at {name} by hand: it stands beside others, or has a routing policy")
