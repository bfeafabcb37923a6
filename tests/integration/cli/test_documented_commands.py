"""Every ``kubesync`` command that a page for people names is one that exists, with these options."""

import re
from collections.abc import Iterator

import pytest

from harness.wire.template import ROOT
from kubesync_local.cli.main import main

PAGES = (
    "README.md", "docs/comparison.md", "docs/clusters.md", "docs/deploy.md", "docs/faq.md", "docs/getting-started.md",
    "docs/install.md", "docs/migration.md", "docs/multi-cluster.md", "docs/proxies.md", "docs/runbook.md", "docs/using.md",
)  # fmt: skip
GROUPS = ("cluster", "local", "upstream")


def _named() -> Iterator[tuple[str, str]]:
    """Commands, and what follows them up to the end of the line or of the code."""
    for page in PAGES:
        text = (ROOT / page).read_text().replace("\\\n", " ")
        for found in re.finditer(r"(?:^ {4}|`)(?:\.venv/bin/)?kubesync ([a-z][^`\n#]*)", text, re.MULTILINE):
            words = found[1].split()
            # What follows `render`, `help` and others is an argument, not a command.
            own = [word for word in words[: 2 if words[0] in GROUPS else 1] if re.fullmatch(r"[a-z]+", word)]
            yield " ".join(own), " ".join(word for word in words if word.startswith("--"))


def _help(command: str, capsys: pytest.CaptureFixture[str]) -> str:
    """What ``--help`` says of it; empty: there is no such command."""
    try:
        status = main([*command.split(), "--help"])
    except SystemExit as ended:
        status = int(ended.code or 0)
    shown = capsys.readouterr().out
    return shown if status == 0 and f"kubesync {command}" in " ".join(shown.split()) else ""


def test_commands_and_options_on_the_pages_exist(capsys: pytest.CaptureFixture[str]) -> None:
    named = sorted(set(_named()))

    assert len(named) > 15
    for command, options in named:
        shown = _help(command, capsys)
        assert shown, command
        assert [option for option in options.split() if option.partition("=")[0] not in shown] == [], command


def test_command_that_does_not_exist_is_found_out(capsys: pytest.CaptureFixture[str]) -> None:
    assert (_help("cluster vanish", capsys), _help("vanish", capsys)) == ("", "")
