"""Tables in memory for commands, functions and sessions in this process: most of what these cost in a test is HTTP to DynamoDB's
stand-in. ``tests/contract/store`` holds the store in memory to the real adapter; ``tests/e2e`` runs commands over HTTP.
"""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from typing import Final

import boto3
import pytest

from harness.fakes.memory_store import MemoryStore
from kubesync.actors.scheduler import Scheduler
from kubesync.actors.threads import ThreadScheduler
from kubesync.aws.dynamodb.store import Store
from kubesync.aws.dynamodb.store_calls import StoreCalls
from kubesync.aws.tables.items import SchemaGuard
from kubesync.bootstrap.application import Application
from kubesync.settings import Settings
from kubesync_local.workplace import stores

URL: Final = "http://tables-in-memory.invalid"
"""The endpoint of DynamoDB that stands for them. Every table exists there; no connection to it can succeed."""

WHERE: Final = [
    pytest.param(True, id="in memory"),
    pytest.param(False, id="over HTTP", marks=(pytest.mark.thorough, pytest.mark.soak)),
]
"""Parameters of a fixture: ``make test`` keeps the tables in memory, ``make thorough`` does the same over HTTP."""


@cache
def memory_tables(prefix: str) -> MemoryStore:
    """The tables of this prefix."""
    return MemoryStore(clock=ThreadScheduler())


@contextmanager
def tables_in_memory() -> Iterator[None]:
    """Applications whose environment names ``URL`` use tables in memory; others are as they are."""
    over_http, lease_over_http = Application.store, Application.lease_store

    def in_memory(application: Application, counted: StoreCalls | None) -> Store | None:
        if os.environ.get("AWS_ENDPOINT_URL_DYNAMODB") != URL:
            return None
        store = memory_tables(application.settings.tables)
        if counted is not None:
            store.counted = counted
        return SchemaGuard(store, application.schema)

    def store(application: Application, counted: StoreCalls | None = None) -> Store:
        return in_memory(application, counted) or over_http(application, counted)

    def lease_store(application: Application, counted: StoreCalls | None = None) -> Store:
        return in_memory(application, counted) or lease_over_http(application, counted)

    opened_over_http = stores.open_store

    def open_store(session: boto3.Session, settings: Settings, clock: Scheduler) -> Store:
        if os.environ.get("AWS_ENDPOINT_URL_DYNAMODB") != URL:
            return opened_over_http(session, settings, clock)
        return SchemaGuard(memory_tables(settings.tables))

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(stores, "open_store", open_store)
        patch.setattr(Application, "store", store)
        patch.setattr(Application, "lease_store", lease_store)
        yield
