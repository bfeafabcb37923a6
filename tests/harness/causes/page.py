"""Writes the table of causes into the runbook: ``python -m harness.causes.page``. Each row is driven by ``integration/causes``."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from harness.causes.table import CAUSES, Cause
from harness.wire.template import ROOT, read_template, resources
from page_parts import with_part

PAGE: Final = ROOT / "docs" / "runbook.md"
BEGIN: Final = "<!-- causes: made by make causes -->\n"
END: Final = "<!-- end of the causes -->\n"
_HEAD: Final = "| cause | alarms | metrics | `kubesync status` says | what to do |\n|---|---|---|---|---|\n"
_NOTHING: Final = "nothing; see the log"


def table() -> str:
    """All causes, in the order in which they are written down."""
    alarms = resources(read_template(), "AWS::CloudWatch::Alarm")
    metrics = {name.removesuffix("Alarm"): each["Properties"]["MetricName"] for name, each in alarms.items()}
    return _HEAD + "".join(_row(cause, (metrics[alarm] for alarm in sorted(cause.alarms))) for cause in CAUSES.values())


def _row(cause: Cause, metrics: Iterable[str]) -> str:
    alarms = (
        ", ".join(f"[{alarm}](#{alarm.lower()})" for alarm in sorted(cause.alarms)) or "none: a person has to decide"
    )
    watched = ", ".join(f"`{name}`" for name in dict.fromkeys(metrics)) or "`WaitingForPerson`"
    status = f"*{cause.status.removesuffix(' at')}*" if cause.status else _NOTHING
    page, _, title = cause.section.partition("#")
    link = f"[{page or title}]({cause.section})" if page.endswith(".md") else f"[{title or page}](#{title or page})"
    return f"| {cause.title} | {alarms} | {watched} | {status} | {link} |\n"


def page_with(page: str, made: str) -> str:
    """The page with this table between its markers."""
    return with_part(page, BEGIN, END, made)


def main() -> None:
    PAGE.write_text(page_with(PAGE.read_text(), table()))


if __name__ == "__main__":
    main()
