"""The pages of ``kubesync help``: groups, examples, and what they do without words."""

import shlex
import subprocess
import sys
from typing import Final

import pytest

from harness.cli_stack import a_bare_environment, call
from kubesync_local.cli.examples import EXAMPLES
from kubesync_local.cli.help_pages import GROUPS, pages
from kubesync_local.cli.main import build_parser
from kubesync_local.cli.parser import short_texts

_PAGES: Final = dict(pages(build_parser()))
_COMMANDS: Final = sorted(words for words, page in _PAGES.items() if not any(k.startswith(f"{words} ") for k in _PAGES))


@pytest.mark.parametrize("words", _COMMANDS)
def test_every_command_has_an_example_that_can_be_typed(words: str) -> None:
    page = call("help", *words.split(), environment=a_bare_environment())

    assert (page.status, page.err) == (0, "")
    assert page.out.endswith(f"\nexample:\n  {EXAMPLES[words]}\n")
    typed = EXAMPLES[words].partition("$(")[2].partition(")")[0] or EXAMPLES[words].partition(" > ")[0]
    assert typed.startswith(f"kubesync {words}")
    assert build_parser().parse_known_args(shlex.split(typed)[1:])[1] == []


def test_every_command_stands_in_one_group() -> None:
    grouped = [name for _, names in GROUPS for name in names]

    assert sorted(set(grouped)) == sorted(grouped)
    assert sorted(short_texts(build_parser()).keys() - set(grouped)) == []


def test_help_shows_the_groups_in_order_and_fits_the_screen() -> None:
    page = call("help", environment={**a_bare_environment(), "COLUMNS": "80"})

    titles = [line for line in page.out.splitlines() if line.endswith(":") and not line.startswith(" ")]
    assert titles == [
        "Try it on this machine:",
        *(["Look before you publish:"] if {"lint", "plan"} & short_texts(build_parser()).keys() else []),
        "Watch and publish:",
        "See what is there:",
        "Clusters and named upstreams:",
        "The command itself:",
        "Options:",
    ]
    assert max(map(len, page.out.splitlines())) <= 80
    assert page.out == call("--help", environment={**a_bare_environment(), "COLUMNS": "80"}).out


def test_no_words_print_the_same_page_as_an_error() -> None:
    ran, page = (call(*words, environment=a_bare_environment()) for words in ([], ["help"]))

    assert (ran.status, ran.out, ran.err) == (2, "", page.out)


def last_line(code: str) -> str:
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, env=a_bare_environment()
    )
    return done.stdout.splitlines()[-1]


def test_help_loads_neither_the_sdk_nor_what_draws_tables_nor_dear_modules_of_python() -> None:
    dear = {"boto3", "pydantic", "rich", "yaml", "shtab", "aws_lambda_powertools"}
    dear |= {"pathlib", "shutil", "threading", "difflib", "shlex"}  # 10 to 20 ms each of Python's own
    # An installed command has some of them from what Python itself loads (site).
    code = "import sys; before = set(sys.modules); from kubesync_local.cli.main import main; main(['help']); "

    assert last_line(f"{code} print(sorted({dear} & sys.modules.keys() - before))") == "[]"


def test_status_loads_nothing_that_reads_objects_of_clusters() -> None:
    code = "import sys, kubesync_local.commands.show.status; "

    assert last_line(f"{code} print([name for name in sys.modules if name.startswith('kubesync.kubernetes')])") == "[]"


def test_only_a_command_of_its_own_process_keeps_what_it_has_loaded_from_the_garbage_collector() -> None:
    words = ["local", "env", "--dir", "/nowhere"]
    begin = f"import gc, sys; from kubesync_local.cli.main import main; sys.argv[1:] = {words}; "
    end = "print(gc.get_freeze_count() > 1000, gc.isenabled())"

    assert last_line(f"{begin} main(); {end}") == "True True"
    assert last_line(f"{begin} main({words}); {end}") == "False True"
