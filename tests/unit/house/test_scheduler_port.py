"""Deployed code takes threads, locks, time and chance from the scheduler that it is given (``kubesync.actors``)."""

import ast
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

ROOT: Final = Path(__file__).resolve().parents[3]
PACKAGE: Final = ROOT / "layers/kubesync/kubesync"
OF_THE_MACHINE: Final = frozenset(
    {"threading", "_thread", "concurrent", "queue", "random", "secrets", "time", "uuid", "sched", "multiprocessing"}
)
# What may be imported where, and why.
ALLOWED: Final[dict[str, frozenset[str]]] = {
    # Inner locks of adapters. They guard counters and caches; nobody meets another actor there.
    "aws/secrets/references.py": frozenset({"threading"}),
    "aws/route53/rate.py": frozenset({"threading"}),
    "aws/route53/accounts.py": frozenset({"threading"}),
    "aws/dynamodb/store_calls.py": frozenset({"threading"}),
    "aws/kept.py": frozenset({"threading"}),
    "kubernetes/transport/connections.py": frozenset({"threading"}),
    "kubernetes/transport/credential_ends.py": frozenset({"threading"}),
    # Tokens that make one transaction idempotent; nothing is decided by them, and nothing stored holds them.
    "aws/fencing/take_over.py": frozenset({"secrets"}),
    # A look at what one invocation reaches: no actor takes part.
    "bootstrap/reach.py": frozenset({"concurrent"}),
    # The signals of the process itself.
    "bootstrap/shutdown.py": frozenset({"threading"}),
}


def _imported(text: str) -> Iterator[str]:
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Import):
            yield from (alias.name.partition(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            yield node.module.partition(".")[0]


def _of_the_machine(text: str) -> frozenset[str]:
    return OF_THE_MACHINE.intersection(_imported(text))


def _files() -> list[Path]:
    return sorted(path for path in PACKAGE.rglob("*.py") if path.parent != PACKAGE / "actors")


@pytest.mark.parametrize("path", _files(), ids=lambda path: str(path.relative_to(PACKAGE)))
def test_threads_locks_time_and_chance_come_from_the_scheduler(path: Path) -> None:
    assert _of_the_machine(path.read_text()) <= ALLOWED.get(str(path.relative_to(PACKAGE)), frozenset())


def test_what_is_imported_within_a_function_counts_as_well() -> None:
    text = "import ast\ndef f():\n    from concurrent.futures import Future\n    import time as t\n"

    assert _of_the_machine(text) == {"concurrent", "time"}
