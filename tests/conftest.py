"""What holds for every test: no credential is logged or printed (I8); hypothesis does not judge by the wall clock; AWS models are read once."""

import logging
import os
from collections.abc import Generator, Iterator

import pytest
from hypothesis import HealthCheck, settings
from xdist.scheduler import LoadScopeScheduling  # type: ignore[import-untyped]  # has no types

from harness.aws_models import share_models
from harness.secrets_watch import LeakingLogs, leak_in

# A busy machine is no failure. In CI the examples are always the same: a new one is for whoever is there to look at it.
settings.register_profile(
    "kubesync",
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
    derandomize=bool(os.environ.get("CI")),
)
settings.load_profile("kubesync")
share_models()

# Tests of these files share a story that takes minutes: one worker plays it for all of them.
_STORIES = ("tests/upgrade/test_updates_change_nothing.py",)


class _ByStory(LoadScopeScheduling):  # type: ignore[misc]  # has no types
    """Each test goes to whoever is free, those of a story to one worker."""

    def _split_scope(self, nodeid: str) -> str:
        path = nodeid.partition("::")[0]
        return path if path in _STORIES else nodeid


def pytest_xdist_make_scheduler(config: pytest.Config, log: object) -> _ByStory | None:
    return _ByStory(config, log) if config.getvalue("dist") == "loadgroup" else None


_PRINTED = ("capstdout", "capstderr", "caplog")


@pytest.fixture(autouse=True)
def _no_secret_is_logged() -> Iterator[None]:
    """I8: looks at the log while the test runs, whatever thread writes it."""
    handler = LeakingLogs()
    # Powertools' loggers have handlers of their own, and do not always hand records on.
    loggers = [logging.getLogger(), logging.getLogger("kubesync")]
    for logger in loggers:
        logger.addHandler(handler)
    yield
    for logger in loggers:
        logger.removeHandler(handler)
    assert not handler.leaks, f"I8: a credential was logged: {handler.leaks[0]}"


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """I8: looks at what the test printed, and at what sessions in it did."""
    report = yield
    if report.passed and (found := leak_in([getattr(report, name) for name in _PRINTED])):
        report.outcome = "failed"
        report.longrepr = f"I8: a credential was printed: {found}"
    return report
