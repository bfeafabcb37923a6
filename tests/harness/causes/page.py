"""Writes the table of causes into the runbook: ``python -m harness.causes.page``. Each row is driven by ``integration/causes``."""

from typing import Final

from harness.causes.table import CAUSES, Cause
from harness.wire.template import ROOT
from page_parts import with_part

PAGE: Final = ROOT / "docs" / "runbook.md"
BEGIN: Final = "<!-- causes: made by make causes -->\n"
END: Final = "<!-- end of the causes -->\n"
_HEAD: Final = "| cause | alarms | `kubesync status` says | what to do |\n|---|---|---|---|\n"
_NOTHING: Final = "see the log"


def table() -> str:
    """All causes, in the order in which they are written down."""
    return _HEAD + "".join(map(_row, CAUSES.values()))


def _row(cause: Cause) -> str:
    alarms = ", ".join(f"[{alarm}](#{alarm.lower()})" for alarm in sorted(cause.alarms)) or "none: decide"
    status = f"*{cause.status.removesuffix(' at')}*" if cause.status else _NOTHING
    page, _, title = cause.section.partition("#")
    link = f"[{page or title}]({cause.section})" if page.endswith(".md") else f"[{title or page}](#{title or page})"
    return f"| {cause.title} | {alarms} | {status} | {link} |\n"


def page_with(page: str, made: str) -> str:
    """The page with this table between its markers."""
    return with_part(page, BEGIN, END, made)


def main() -> None:
    PAGE.write_text(page_with(PAGE.read_text(), table()))


if __name__ == "__main__":
    main()
