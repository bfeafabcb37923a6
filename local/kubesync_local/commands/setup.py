"""``kubesync setup``: make the four tables, where no template does."""

from __future__ import annotations

import argparse

from kubesync.aws.dynamodb import build_dynamodb_client
from kubesync.aws.tables import create_tables
from kubesync_local.commands.workplace import Workplace
from kubesync_local.output import remark


def run(_arguments: argparse.Namespace) -> int:
    """Make what is missing; safe to run again."""
    work = Workplace()
    client = build_dynamodb_client(work.boto, connect_timeout=2, read_timeout=10)
    for name, made in create_tables(client, work.settings.tables).items():
        remark(f"table {name} {'made' if made else 'was there already'}")
    return 0
