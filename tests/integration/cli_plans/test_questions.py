"""Commands that change something, on a terminal: what they show and ask, and that only a yes changes anything."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from harness.cli_stack import CliStack, a_cli_stack
from harness.dialogue import CTRL_C, END_OF_INPUT, a_dialogue
from kubesync.aws.dynamodb.store import TABLES
