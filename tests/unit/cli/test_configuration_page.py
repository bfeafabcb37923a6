"""docs/configuration.md lists exactly the settings and options that there are."""

import argparse
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from kubesync.settings import Settings
from kubesync_local.cli.main import build_parser
from kubesync_local.cli.place_options import VARIABLES
from kubesync_local.terminal.logs import LEVELS

ROOT: Final = Path(__file__).resolve().parents[3]
PAGE: Final = (ROOT / "docs/configuration.md").read_text()
_SETTING: Final = re.compile(r"^\| `KUBESYNC_(\w+)` \| (?:`(.*?)`)? ?\|", re.MULTILINE)
_LOCAL: Final = {"log_level", "debug"}


def test_every_setting_is_listed_with_its_default() -> None:
    listed = {name.lower(): default for name, default in _SETTING.findall(PAGE) if name.lower() not in _LOCAL}
    defaults = {name: field.default for name, field in Settings.model_fields.items()}

    assert list(listed) == list(defaults)
    for name, default in defaults.items():
        shown = (
            "kubesync-<deployment>"
            if name == "table_prefix"
            else f"{default:g}"
            if isinstance(default, float)
            else str(default).lower()
            if isinstance(default, bool)
            else default
        )
        assert listed[name] == str(shown), name


def test_every_option_of_cluster_add_is_listed() -> None:
    parser = build_parser()
    for word in ("cluster", "add"):
        (commands,) = [each for each in parser._actions if isinstance(each, argparse._SubParsersAction)]
        parser = commands.choices[word]
    options = {option for action in parser._actions for option in action.option_strings}
    section = PAGE.partition("## A cluster")[2].partition("### Removing a cluster")[0]

    assert set(re.findall(r"--[a-z][a-z-]+", section)) == options - {"-h", "--help", *VARIABLES}


def test_levels_of_the_log_are_listed() -> None:
    (row,) = re.findall(r"^\| `KUBESYNC_LOG_LEVEL` .*$", PAGE, re.MULTILINE)

    assert re.findall(r"`([A-Z]+)`", row.split("|")[3]) == list(LEVELS)


def _options(parser: argparse.ArgumentParser, words: tuple[str, ...] = ()) -> Iterator[tuple[str, argparse.Action]]:
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for word, command in action.choices.items():
                yield from _options(command, (*words, word))
        else:
            yield " ".join(words), action


def test_every_option_is_explained_in_its_help_and_on_a_page() -> None:
    pages = "".join(page.read_text() for page in (ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))))
    mentioned = set(re.findall(r"--[a-z0-9][a-z0-9-]*", pages)) | {"--help", "--version"}
    found = list(_options(build_parser()))

    assert len(found) > 60
    assert [f"{command} {action.dest}" for command, action in found if not action.help] == []
    long = {(command, option) for command, action in found for option in action.option_strings if option[:2] == "--"}
    assert sorted(each for each in long if each[1] not in mentioned) == []
