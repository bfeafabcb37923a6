"""Writes the pages of ``docs/reference/`` from the code: ``python tools/reference.py``. A test fails where a page is old.

    page           made from
    ----           ---------
    commands.md    the command line's own parser
    metrics.md     the table in the docstring of ``telemetry.metrics``
    alarms.md      template.yaml
    answers.md     a run of the commands on stand-ins: see ``harness.answers_page``

A table in a docstring is a line of titles, a line of hyphens under them, and rows. A row without a first cell goes on from the one above.
"""

import argparse
import ast
import re
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Final

from harness.answers_page import answers_page
from harness.wire.template import read_template, resources
from kubesync_local.cli.examples import EXAMPLES
from kubesync_local.cli.help_pages import pages
from kubesync_local.cli.main import build_parser
from kubesync_local.cli.parser import commands_of, short_texts
from kubesync_local.cli.place_options import VARIABLES

ROOT: Final = Path(__file__).resolve().parent.parent
FOLDER: Final = ROOT / "docs" / "reference"
_PACKAGE: Final = ROOT / "layers" / "kubesync" / "kubesync"
_RULE: Final = re.compile(r"^ *-{3,}( +-{3,})+$")
_OPERATORS: Final = {
    "LessThanThreshold": "<",
    "GreaterThanThreshold": ">",
    "GreaterThanOrEqualToThreshold": "≥",
}
_OF_A_CLUSTER: Final = ("cluster add", "cluster set")
_MISSING: Final = {"breaching": "alarm", "notBreaching": "no alarm", "ignore": "as before"}


def main() -> None:
    """Write every page."""
    FOLDER.mkdir(exist_ok=True)
    for name, page in {**quick_pages(), "answers.md": answers_page()}.items():
        (FOLDER / name).write_text(page)
        sys.stdout.write(f"docs/reference/{name}\n")


def quick_pages() -> dict[str, str]:
    """The pages that need no run, by their file's name."""
    return {
        "commands.md": commands_page(),
        "metrics.md": metrics_page(),
        "alarms.md": alarms_page(),
    }


def commands_page() -> str:
    """Every command with its options."""
    parts = []
    for words, command in sorted(pages(build_parser())):
        if commands_of(command) is None:
            parts.append(f"## kubesync {words}\n\n{_prose(_first_sentence(command.description or _short(words)))}\n")
            parts.append(f"    {EXAMPLES[words]}\n")
            shown = [_option(each) for each in _options(command) if not _explained(words, each)]
            if words in _OF_A_CLUSTER:
                parts.append("Besides, [the options of a cluster](../configuration.md#a-cluster).\n")
            if shown:
                parts.append(f"{', '.join(shown)}\n")
    return _page(
        "Commands",
        "All commands in the order of the alphabet, with their options. `kubesync help COMMAND` explains each option. "
        "`-o` (`--output`) is `table`, `json` or `yaml`. "
        "[Using the command](../using.md) shows them at work. `--deployment`, `--region` and `--profile` are options of "
        "[every command that reads tables](../using.md#which-deployment).",
        parts,
    )


def metrics_page() -> str:
    """The metrics of a session."""
    text = _docstring(_PACKAGE / "telemetry" / "metrics.py")
    ((titles, rows),) = tables_in(text)
    found: list[list[str]] = []
    for name, dimensions, unit, written in rows:
        if dimensions and name in ("and", ""):
            if not unit:  # the text of the row above goes on
                found[-1][3] += f" {written}" if written else ""
            found.append([found[-1][0], dimensions, unit or found[-1][2], written if unit else "the same"])
        elif dimensions:
            found.append([name, dimensions, unit, written])
        else:
            found[-1][0] += f" {name}" if name else ""
            found[-1][3] += f" {written}" if written else ""
    shown = [(_codes(name), *rest) for name, *rest in found]
    return _page(
        "Metrics",
        "A session writes its metrics into its log, in CloudWatch's embedded metric format. The namespace is `kubesync`. `service` is "
        "`kubesync-<deployment>`, which separates the deployments of one account. [Alarms](alarms.md) watch some of them.",
        [_markdown(titles, shown), "`code` and `key` are those of [the error codes](../runbook.md#codes).\n"],
    )


def alarms_page() -> str:
    """The alarms of the template."""
    rows = []
    for name, alarm in resources(read_template(), "AWS::CloudWatch::Alarm").items():
        said = alarm["Properties"]
        short = name.removesuffix("Alarm")
        goes_off = f"{said['Statistic']} {_OPERATORS[said['ComparisonOperator']]} {_value(said['Threshold'])}"
        periods = (
            f"{_value(said['DatapointsToAlarm'])} of {_value(said['EvaluationPeriods'])} periods of {said['Period']} s"
        )
        rows.append(
            (f"[{short}](../runbook.md#{short.lower()})", f"`{said['MetricName']}`", goes_off, periods,
             _MISSING[said["TreatMissingData"]])
        )  # fmt: skip
    return _page(
        "Alarms",
        "The stack makes these alarms, as `kubesync-<DeploymentId>-<name>`. Names in `code` are [parameters](../deploy.md#parameters) of the "
        "template; the runbook says what each alarm means. The last column says what counts while no data comes.",
        [_markdown(("alarm", "metric", "goes off at", "in", "no data"), rows)],
    )


def tables_in(text: str) -> Iterator[tuple[tuple[str, ...], list[list[str]]]]:
    """Titles and rows of each table in a docstring. What stands in further lines of a cell is joined, except in the first one."""
    lines = text.splitlines()
    for number, line in enumerate(lines):
        if _RULE.match(line):
            starts = [found.start() for found in re.finditer(r"-+", line)]
            titles = tuple(_cells(lines[number - 1], starts))
            rows = []
            for row in lines[number + 1 :]:
                if not row.strip():
                    break
                rows.append(_cells(row, starts))
            yield titles, rows


def _cells(line: str, starts: Sequence[int]) -> list[str]:
    ends = [*starts[1:], len(line)]
    return [line[max(start, 0) : end].strip() for start, end in zip([0, *starts[1:]], ends, strict=True)]


def _docstring(path: Path) -> str:
    return ast.get_docstring(ast.parse(path.read_text()), clean=True) or ""


def _first_sentence(text: str) -> str:
    return re.split(r"(?<=[.])\s+(?=[A-Z`-])", " ".join(text.split()), maxsplit=1)[0]


def _short(words: str) -> str:
    """What the list of commands says of one."""
    parser = build_parser()
    for word in words.split():
        text = short_texts(parser)[word]
        parser = dict(pages(parser))[word]
    return f"{text[0].upper()}{text[1:]}."


def _options(command: argparse.ArgumentParser) -> list[argparse.Action]:
    left_out = {"help", "output", *VARIABLES.values()}
    return [each for each in command._actions if each.dest not in left_out]  # noqa: SLF001 - argparse has no public way


def _explained(words: str, action: argparse.Action) -> bool:
    """Whether docs/configuration.md has a row for an option of a cluster."""
    rows = re.findall(r"^\| `--.*?\|", (ROOT / "docs" / "configuration.md").read_text(), re.MULTILINE)
    known = set(re.findall(r"--[a-z-]+", " ".join(rows)))
    return words in _OF_A_CLUSTER and bool(known & set(action.option_strings))


def _option(action: argparse.Action) -> str:
    metavar = action.metavar
    value = " ".join(metavar) if isinstance(metavar, tuple) else metavar or ""
    if not value and action.choices is not None:
        value = ",".join(map(str, action.choices))
    if not value and action.option_strings and action.nargs != 0:
        value = action.dest.upper()
    named = ", ".join(action.option_strings) or value or action.dest
    shown = f"{named} {value}".strip() if action.option_strings else named
    return f"`{shown}`"


def _markdown(titles: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    if not rows:
        return ""
    lines = [
        titles,
        ["---"] * len(titles),
        *([cell.replace("|", "\\|").replace("``", "`") for cell in row] for row in rows),
    ]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines).replace("| --- ", "|---").replace("|--- |", "|---|")


def _prose(text: str) -> str:
    """Text with nothing that Markdown would take for markup."""
    return re.sub(r"(?<!`)([<*_])(?![^`]*`)", r"\\\1", " ".join(text.split()))


def _codes(names: str) -> str:
    return ", ".join(f"`{name}`" for name in re.split(r",\s*", names) if name)


def _value(value: Any) -> str:
    return f"`{value['Ref']}`" if isinstance(value, dict) else str(value)


def _page(title: str, about: str, parts: Sequence[str]) -> str:
    body = "\n".join(part for part in parts if part)
    return f"# {title}\n\n{about}\n\n<!-- made by make reference -->\n\n{body}"


if __name__ == "__main__":
    main()
