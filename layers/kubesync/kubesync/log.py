"""The log of everything deployed. Each record shows where it was written."""

import json
from functools import partial
from typing import Final

from aws_lambda_powertools import Logger

logger: Final = Logger(service="kubesync", child=True)
"""A child of the functions' own Logger, which says how records are written."""

ascii_json: Final = partial(json.dumps, default=str, separators=(",", ":"))
r"""Serializes a log line. Powertools' own leaves DEL, C1 and bidirectional controls as they are, and ``aws logs tail`` prints a line to a
terminal: here they are ``\u202e``, as all that is not ASCII.
"""
