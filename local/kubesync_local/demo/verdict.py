"""Compares the zone and the upstreams table with the expected result, and shows both as tables."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from rich.console import Console

from kubesync_local.demo.board import Board
from kubesync_local.demo.outside import Records, Upstreams
from kubesync_local.terminal.escaping import visible
from kubesync_local.terminal.output import print_table

if TYPE_CHECKING:
    from kubesync_local.demo.play import Outcome  # it imports moto, which takes half a second


def differences(
    records: Records, upstreams: Upstreams, wanted_records: Records, wanted_upstreams: Upstreams
) -> list[str]:
    """One line for everything that is missing, surplus or different; empty if all is as expected."""
    named = {f"{name} {kind}": value for (name, kind), value in records.items()}
    wanted = {f"{name} {kind}": value for (name, kind), value in wanted_records.items()}
    return [*_compare(named, wanted), *_compare(upstreams, wanted_upstreams)]


def _compare(found: Mapping[str, object], wanted: Mapping[str, object]) -> list[str]:
    lines = []
    for name in sorted(found.keys() | wanted.keys()):
        if name not in found:
            lines.append(f"missing    {name}: {wanted[name]}")
        elif name not in wanted:
            lines.append(f"surplus    {name}: {found[name]}")
        elif found[name] != wanted[name]:
            lines.append(f"different  {name}: {found[name]}, should be {wanted[name]}")
    return lines


def show_tables(console: Console, outcome: Outcome, zone: str) -> None:
    """What was read from outside."""
    records = [
        {"name": name.removesuffix(f".{zone}"), "type": kind, "TTL": ttl, "values": list(values)}
        for (name, kind), (ttl, values) in sorted(outcome.records.items(), key=_by_name)
    ]
    title = f"hosted zone {zone}, as Route 53 lists it (names without .{zone})"
    print_table(records, ("name", "type", "TTL", "values"), title, names=2, console=console)
    upstreams = [
        {"upstream": upstream, "nodes": ", ".join(map(_node, nodes)) or "none"}
        for upstream, nodes in outcome.upstreams.items()
    ]
    print_table(upstreams, ("upstream", "nodes"), "upstreams table, as a proxy reads it", console=console)


def _by_name(record: tuple[tuple[str, str], object]) -> tuple[list[str], str]:
    (name, kind), _ = record
    return list(reversed(name.split("."))), kind


def _node(node: str) -> str:
    return f"{node[1:]} (not ready)" if node.startswith("!") else node


def show_verdict(console: Console, board: Board, outcome: Outcome, problems: list[str]) -> None:
    """How it went, in a few lines."""
    lag = [report.lag for report in outcome.reports if report.lag]
    console.print()
    for report in outcome.reports:
        listeners = ", ".join(f"{listener.resource} {_begun(listener.resumed)}" for listener in report.listeners)
        console.print(
            f"session {report.session}: {report.took_over}, {report.seconds:.1f} s; {listeners}",
            highlight=False,
            soft_wrap=not console.is_terminal,  # in a pipe each session is one line
        )
    if board.hand_over_seconds is not None:
        console.print(f"hand-over: watching again {board.hand_over_seconds:.2f} s after the lease was released")
    if lag:
        worst = max(each["p50"] for each in lag)
        console.print(
            f"from an event to the accepted batch: median {worst:.2f} s, the second for which events are collected included"
        )
    for line in [*outcome.failures, *problems]:
        console.print(visible(line), style="red", markup=False, soft_wrap=True)
    counted = f"{len(outcome.records)} record sets and {len(outcome.upstreams)} upstreams"
    if problems or outcome.failures:
        console.print(f"✗ {len(problems)} differences from the expected result", style="bold red")
    else:
        console.print(f"✓ {counted} are exactly as expected", style="bold green")


def _begun(resumed: bool) -> str:
    return "resumed" if resumed else "listed"
