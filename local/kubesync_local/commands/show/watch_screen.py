"""The screen of ``kubesync status --watch``: as much as fits, the most important first."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final

from rich.text import Text

from kubesync_local.commands.show.status_table import lease_in_words, lease_style, paused_in_words
from kubesync_local.documents.lag import LagMinute
from kubesync_local.documents.listener_words import ago, words_of_cluster
from kubesync_local.recovery.conflict_words import in_the_way_for_people
from kubesync_local.terminal.escaping import visible
from kubesync_local.terminal.folding import fold_styled
from kubesync_local.terminal.output import side_in_words

_BARS: Final = "▁▂▃▄▅▆▇█"
_STYLES: Final = {"+": "green", "-": "red", "~": "yellow", "!": "bold red"}
MINUTES: Final = 60
_LEAST_CHANGES: Final = 3
_INDENT: Final = 2
_ROOMY: Final = 16


@dataclass(frozen=True, slots=True)
class ClusterView:
    """One cluster: its state, the rows of its listeners, and what is open (service, since when in epoch seconds, why)."""

    name: str
    state: str
    listeners: Sequence[Mapping[str, Any]]
    opened: Sequence[tuple[str, float, str]]


@dataclass(frozen=True, slots=True)
class View:
    """What the screen shows. ``now``: epoch seconds. ``changes``: rows of ``audit``, newest first. ``others``: other shards and their leases."""

    place: str
    now: float
    lease: Mapping[str, Any]
    clusters: Sequence[ClusterView]
    zone_problems: Sequence[str]
    lag: Sequence[LagMinute]
    changes: Sequence[Mapping[str, Any]]
    others: Sequence[tuple[str, Mapping[str, Any]]] = ()


def screen(view: View, width: int, height: int) -> list[Text]:
    """At most ``height`` lines of at most ``width`` cells."""
    lease = _folded(_lease_line(view), width) if height >= _ROOMY else [_lease_line(view)]
    paused = _folded(Text(words, "yellow"), width) if (words := visible(paused_in_words(view.lease, view.now))) else []
    head = [*lease, *(_other_line(*other) for other in view.others), *paused, _lag_line(view, width), Text()]
    in_order = sorted(view.clusters, key=_needs_nobody)
    clusters = [line for each in in_order for text in _cluster_lines(each, view) for line in _folded(text, width)]
    problems = [Text(f"! {visible(problem)}", "bold red") for problem in view.zone_problems]
    problems += [line for cluster in view.clusters for line in _open_lines(cluster, view)]
    changes = [_change_line(row) for row in view.changes]
    room = height - len(head)
    # Clusters get what they need, at most a third of the room if others need it too. What is wrong is read to its end: it takes all
    # but a few lines of changes.
    least = min(len(changes), _LEAST_CHANGES) + 2 if changes else 0
    most = max(3, room - min(len(clusters), max(1, room // 3)) - least)
    wrong = [*_title("pending, and why"), *_whole(problems, width, most - 2)] if problems else []
    first = _cut(clusters, room - len(wrong) - least, "lines of clusters")
    last = _section("last changes", changes, room - len(wrong) - len(first)) if changes else []
    shown = [*head, *first, *wrong, *last]
    for line in shown:
        line.truncate(width, overflow="ellipsis")
    return shown[:height]


def _title(title: str) -> list[Text]:
    return [Text(), Text(title, "bold")]


def _section(title: str, lines: Sequence[Text], room: int) -> list[Text]:
    return [*_title(title), *_cut(lines, room - 2)]


def _whole(texts: Sequence[Text], width: int, room: int) -> list[Text]:
    """Texts folded to the width, as many as fit as a whole; a first one that is longer than the room is cut."""
    shown: list[Text] = []
    for number, text in enumerate(texts):
        lines = _folded(text, width)
        last = number == len(texts) - 1
        if len(shown) + len(lines) > room - (0 if last else 1):
            if not shown:
                shown = lines[: max(1, room - (0 if last else 1))]
                shown[-1].append(" …")
                number += 1
            left = len(texts) - number
            return [*shown, Text(f"... and {left} more", "dim")] if left else shown
        shown += lines
    return shown


def _folded(text: Text, width: int) -> list[Text]:
    first, *rest = fold_styled(text, width, width - _INDENT)
    return [first, *(Text(" " * _INDENT) + line for line in rest)]


def _cut(lines: Sequence[Text], room: int, what: str = "more") -> list[Text]:
    if len(lines) <= room:
        return list(lines)
    shown = lines[: max(0, room - 1)]
    return [*shown, Text(f"... and {len(lines) - len(shown)} {what}", "dim")]


def _lease_line(view: View) -> Text:
    lease, clock = view.lease, f"{datetime.fromtimestamp(view.now, UTC):%H:%M:%S} UTC"
    before, state = lease_in_words(lease["state"], lease["holder"])
    if lease["state"] == "held":
        before, state = "", f"session {lease['holder']} runs"
    until = f" until {lease['session_ends_at'][11:19]}" if lease["state"] == "held" and lease["session_ends_at"] else ""
    return Text.assemble(
        (f"{clock}  ", "dim"),
        (f"{visible(view.place)}  ", "bold"),
        before,
        (f"{state}{until}", lease_style(lease["state"])),
    )


def _other_line(shard: str, lease: Mapping[str, Any]) -> Text:
    before, state = lease_in_words(lease["state"], lease["holder"])
    return Text.assemble((f"shard {shard}  ", "bold"), before, (state, lease_style(lease["state"])))


def _lag_line(view: View, width: int) -> Text:
    if not view.lag:
        return Text("lag: no change has landed within the last hour", "dim")
    room = max(10, min(MINUTES, width - 60))
    first = int(view.now) // 60 - room + 1
    shown = {each.minute // 60 - first: each for each in view.lag}
    worst = max(view.lag, key=lambda each: each.p99_seconds)
    bars = "".join(_bar(shown.get(minute), worst.p99_seconds) for minute in range(room))
    usual = sorted(each.median_seconds for each in view.lag)[len(view.lag) // 2]
    at = f"{datetime.fromtimestamp(worst.minute, UTC):%H:%M}"
    changes = sum(each.changes for each in view.lag)
    said = f"  {changes} changes, usual {usual:.2f} s, slowest {worst.p99_seconds:.2f} s at {at}"
    return Text.assemble("lag ", (bars, "cyan"), said)


def _bar(minute: LagMinute | None, top: float) -> str:
    if minute is None:
        return " "
    return _BARS[min(len(_BARS) - 1, int(minute.p99_seconds / max(top, 0.001) * (len(_BARS) - 1)))]


def _needs_nobody(cluster: ClusterView) -> tuple[bool, str]:
    return not _fails(cluster), cluster.name


def _cluster_lines(cluster: ClusterView, view: View) -> list[Text]:
    disabled = cluster.state == "disabled"
    words = words_of_cluster(cluster.listeners, view.now, running=view.lease["state"] == "held", disabled=disabled)
    work = f"{len(cluster.opened)} pending" if cluster.opened else "in sync"
    state = "" if cluster.state == "registered" else f"{cluster.state}, "
    same = words[0] if words and len(set(words)) == 1 else ""
    head = Text.assemble((f"{visible(cluster.name)}  ", "bold"), f"{state}{work}")
    if not words:
        return [head.append("  no session has watched it yet", "dim")]
    if same:
        return [head.append(f"  {visible(same)}", "red" if _fails(cluster) else "dim")]
    return [
        head,
        *(
            Text.assemble(f"  {row['listener']}: ", (visible(text), "red" if row["state"] == "failing" else "dim"))
            for row, text in zip(cluster.listeners, words, strict=True)
        ),
    ]


def _fails(cluster: ClusterView) -> bool:
    """Whether one of its watches fails. A disabled cluster has none."""
    return cluster.state != "disabled" and any(row["state"] == "failing" for row in cluster.listeners)


def _open_lines(cluster: ClusterView, view: View) -> list[Text]:
    oldest_first = sorted(cluster.opened, key=lambda each: each[1] or view.now)
    return [
        Text.assemble(
            (f"{visible(service)}  ", "bold"),
            (ago(view.now - since).removesuffix(" ago") if since else "", "yellow"),
            f"  {visible(why)}",
        )
        for service, since, why in oldest_first
    ]


def _change_line(row: Mapping[str, Any]) -> Text:
    mark = "!" if row["kind"] == "refused" else "+" if row["from"] is None else "-" if row["to"] is None else "~"
    what = str(row["what"]).partition(" ")[2].rpartition(" in ")[0] or str(row["what"])
    if row["upstream"]:
        what = f"upstream {row['upstream']}"
    both = row["from"] is not None and row["to"] is not None
    sides = (
        f"{side_in_words(row['from'])} → {side_in_words(row['to'])}"
        if both
        else side_in_words(row["to"] or row["from"])
    )
    said = f"{what} {sides}"
    if row["message"] and mark == "!":
        why = in_the_way_for_people(row["message"])
        said = why if why.startswith(what.partition(" ")[0]) else f"{what} {why}"
    return Text.assemble((f"{str(row['at'])[11:19]}  ", "dim"), (visible(f"{mark} {said}"), _STYLES[mark]))
