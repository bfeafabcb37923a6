"""The API server's version and clock."""

import json
from collections.abc import Iterator
from email.utils import parsedate_to_datetime
from typing import Final

from kubesync.actors.scheduler import Clock
from kubesync.aws.tables.control.clusters import ClusterConfig
from kubesync.domain.errors import DeniedError, ListenerError, StatusError
from kubesync.domain.objects import Resource
from kubesync.kubernetes.transport import urls
from kubesync.kubernetes.transport.client import ApiClient
from kubesync_local.check import advice
from kubesync_local.check.step import Step, failed, passed, skipped
from kubesync_local.registration.endpoints_source import choose_endpoints_source

# AWS refuses signatures that are 5 minutes off, and API servers refuse tokens from the future. A minute is a clear warning:
# synchronised clocks differ far less. https://docs.aws.amazon.com/IAM/latest/UserGuide/reference_sigv-troubleshooting.html
_CLOSE_SECONDS: Final = 60.0


def version_steps(api: ApiClient, config: ClusterConfig, clock: Clock) -> Iterator[Step]:
    """The server's version and resources, and its clock against ours."""
    before = clock.epoch_seconds()
    try:
        version = _version(api)
    except ListenerError as error:
        yield failed("version", error, advice.of_error(error))
        yield skipped("clock", "the server did not answer")
        return
    after = clock.epoch_seconds()
    yield _served(api, config, version)
    yield _clock(api.date, (before + after) / 2)


def _version(api: ApiClient) -> str:
    """Empty if it cannot be read; nothing depends on it."""
    try:
        return str(json.loads(api.fetch(urls.ApiRequest("/version")))["gitVersion"])
    except (DeniedError, StatusError) as error:
        if error.status is None or error.status >= 500:
            raise
    except (ValueError, TypeError, KeyError):
        pass
    return ""


def _served(api: ApiClient, config: ClusterConfig, version: str) -> Step:
    says = f"Kubernetes {version}" if version else "version unknown"
    date = api.date
    try:
        best = choose_endpoints_source(api)
    except ListenerError as error:
        return failed("version", error, advice.of_error(error))
    finally:
        api.date = date
    if best is Resource.ENDPOINTS:
        return passed("version", f"{says}, without EndpointSlices")
    if config.endpoints_source is Resource.ENDPOINTS:
        return passed(
            "version", f"{says}, with EndpointSlices; kubesync reads Endpoints, which are deprecated since 1.33"
        )
    return passed("version", f"{says}, with EndpointSlices")


def _clock(date: str, ours: float) -> Step:
    try:
        theirs = parsedate_to_datetime(date).timestamp()
    except ValueError:
        return skipped("clock", "the server does not send its time")
    # A Date header has whole seconds, cut off: half a second on average.
    ahead = theirs + 0.5 - ours
    if abs(ahead) <= _CLOSE_SECONDS:
        return passed("clock", f"the server's clock and ours differ by at most {max(1, round(abs(ahead)))} s")
    which = "ahead of" if ahead > 0 else "behind"
    error = DeniedError(f"the server's clock is {abs(ahead):.0f} s {which} ours")
    return failed(
        "clock",
        error,
        "synchronise both clocks: otherwise tokens, signatures and certificates are refused",
    )
