"""The log of everything deployed. Each record shows where it was written."""

from __future__ import annotations

from typing import Final

from aws_lambda_powertools import Logger

logger: Final = Logger(service="kubesync", child=True)
"""A child of the functions' own Logger, which says how records are written."""
