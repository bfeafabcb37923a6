"""Loads the functions' modules by their path, as Lambda does, and plays the context it hands them."""

import importlib.util
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, cast

ROOT: Final = Path(__file__).resolve().parents[3]


@dataclass(slots=True)
class FakeContext:
    """What a handler and Powertools read of a Lambda context. ``seconds`` are left of the invocation, until a test says otherwise."""

    seconds: float = 900.0
    function_name: str = "kubesync-test"
    function_version: str = "$LATEST"
    memory_limit_in_mb: int = 1024
    invoked_function_arn: str = "arn:aws:lambda:eu-west-1:123456789012:function:kubesync-test"
    aws_request_id: str = "00000000-0000-0000-0000-000000000000"

    def get_remaining_time_in_millis(self) -> int:
        return int(self.seconds * 1000)


def load_handler(function: str) -> Callable[[Any, FakeContext], dict[str, Any]]:
    """The handler of ``functions/<function>/app.py``, freshly imported."""
    path = ROOT / "functions" / function / "app.py"
    spec = importlib.util.spec_from_file_location(f"functions_{function}_app", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return cast("Callable[[Any, FakeContext], dict[str, Any]]", module.handler)
