"""docs/configuration.md lists exactly the settings and options that there are."""

from __future__ import annotations

import argparse
import re
from pathlib import Path
from typing import Final

from kubesync.settings import Settings
from kubesync_local.cli import build_parser

PAGE: Final = (Path(__file__).resolve().parents[3] / "docs/configuration.md").read_text()
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
            else default
        )
        assert listed[name] == str(shown), name


def test_every_option_of_cluster_add_is_listed() -> None:
    parser = build_parser()
    for word in ("cluster", "add"):
        (commands,) = [each for each in parser._actions if isinstance(each, argparse._SubParsersAction)]
        parser = commands.choices[word]
    options = {option for action in parser._actions for option in action.option_strings}
    section = PAGE.partition("## A cluster")[2]

    assert set(re.findall(r"--[a-z][a-z-]+", section)) == options - {"-h", "--help"}
