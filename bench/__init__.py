"""Measures the figures that the design asks for (docs/benchmarks.md): ``python -m bench [NAME ...]``."""

import sys
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).resolve().parent.parent

# The environment with the other clients has no kubesync installed: this tree is measured, in child processes too.
for _folder in ("tests", "local", "layers/kubesync"):
    if str(ROOT / _folder) not in sys.path:
        sys.path.insert(0, str(ROOT / _folder))
