"""Codes 6 to 12: each by a real cause, found in the table with its count, in the history, and in the report."""

import socket
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from harness.seen.persisted_errors import ended_of, errors_of, history_of, items_that_hold, last_of
from harness.stack import TOKEN, Stack, a_stack
from kubesync.domain.errors import ErrorCode
from kubesync.domain.objects import Resource
from kubesync_local.standins.apiserver import ServerOptions
from kubesync_local.standins.apiserver.transport import faults as api_faults
from kubesync_local.standins.apiserver.transport.certificates import CertificateAuthority

SECRET = "token-that-is-refused-and-must-not-leak"
AUTHORITY = CertificateAuthority("kubernetes")
OTHER_AUTHORITY = CertificateAuthority("somebody else")


@dataclass(frozen=True)
class Cause:
    """What goes wrong, and what is to be read about it.

    ``arrange`` returns what the cluster's configuration says besides; ``says`` are parts of the message; ``then``
    happens while the session runs.
    """

    code: ErrorCode
    says: tuple[str, ...]
    arrange: Callable[[Stack], Mapping[str, Any]] = lambda _stack: {}
    options: ServerOptions = field(default_factory=ServerOptions)
    settings: Mapping[str, Any] = field(default_factory=dict)
    status: int | None = None
    then: Callable[[Stack], object] = lambda _stack: None


def _fault(fault: api_faults.Fault, verb: str = "list") -> Callable[[Stack], Mapping[str, Any]]:
    def arrange(stack: Stack) -> Mapping[str, Any]:
        stack.api.faults.add(fault, resource="services", verb=verb, times=None)
        return {}

    return arrange


def _server(url: str) -> Callable[[Stack], Mapping[str, Any]]:
    return lambda _stack: {"server": url}


def _refusing_port(_stack: Stack) -> Mapping[str, Any]:
    with socket.create_server(("127.0.0.1", 0)) as closed_soon:
        return {"server": f"http://127.0.0.1:{closed_soon.getsockname()[1]}"}


def _trusts(authority: CertificateAuthority) -> Callable[[Stack], Mapping[str, Any]]:
    return lambda _stack: {"ca_pem": authority.pem.decode()}


def _denied(stack: Stack) -> Mapping[str, Any]:
    stack.api.authority.deny(resource="services")
    return {}


def _unknown_token(_stack: Stack) -> Mapping[str, Any]:
    return {"token": "env:KUBESYNC_TEST_REFUSED_TOKEN"}


def _expose_a_service(stack: Stack) -> None:
    """Gives a watch of services something to send."""
    stack.api.requests.wait_for_count(1, resource="services", verb="watch")
    stack.api.cluster.expose("default", "late", {"ports": [{"port": 80}]})


# One of each code and way: ``integration/kubernetes/test_transport_errors.py`` has the others.
CAUSES: Mapping[str, Cause] = {
    "name does not resolve": Cause(
        ErrorCode.PARSE_DOMAIN, ("no-such-host.invalid:6443", "resolve"), _server("https://no-such-host.invalid:6443")
    ),
    "refused": Cause(ErrorCode.CONNECT_FAILED, ("connection refused",), _refusing_port),
    "certificate of another authority": Cause(
        ErrorCode.SSL_HANDSHAKE,
        ("certificate",),
        _trusts(OTHER_AUTHORITY),
        ServerOptions(tls=AUTHORITY.issue()),
    ),
    "reset before answering": Cause(
        ErrorCode.REQUEST_URI, ("before a status line",), _fault(api_faults.Close(reset=True))
    ),
    "401": Cause(ErrorCode.REQUEST_DENIED, ("HTTP 401", "Unauthorized"), _unknown_token, status=401),
    "403": Cause(ErrorCode.REQUEST_DENIED, ("HTTP 403", "forbidden", "services"), _denied, status=403),
    "503": Cause(
        ErrorCode.REQUEST_STATUS,
        ("HTTP 503", "apiserver is shutting down"),
        _fault(api_faults.Answer(503, "ServiceUnavailable", "apiserver is shutting down")),
        status=503,
    ),
    "body is no JSON": Cause(ErrorCode.READ_BODY, ("decoded",), _fault(api_faults.garbage())),
    "watch cut in a chunk": Cause(
        ErrorCode.READ_BODY,
        ("closed inside a chunk",),
        _fault(api_faults.CutMidChunk(), "watch"),
        then=_expose_a_service,
    ),
    "watch goes silent": Cause(
        ErrorCode.READ_BODY,
        ("silent",),
        _fault(api_faults.Silent(events=0), "watch"),
        settings={"bookmark_interval_seconds": 0.4},
    ),
}


@contextmanager
def _stack_of(cause: Cause, monkeypatch: pytest.MonkeyPatch) -> Iterator[Stack]:
    monkeypatch.setenv("KUBESYNC_TEST_REFUSED_TOKEN", SECRET)
    with a_stack(cause.options) as stack:
        yield stack


@pytest.mark.parametrize("cause", CAUSES.values(), ids=CAUSES.keys())
def test_code_is_persisted_for_its_cause(cause: Cause, monkeypatch: pytest.MonkeyPatch) -> None:
    with _stack_of(cause, monkeypatch) as stack:
        stack.add_cluster(**cause.arrange(stack))
        running = stack.start(**cause.settings)
        cause.then(stack)
        running.wait_for(lambda: last_of(stack.store).get("code") == int(cause.code))
        report = running.end(ErrorCode.MAX_RUNTIME)

        last = last_of(stack.store)
        assert (last["code"], last["key"], last["session"]) == (int(cause.code), cause.code.key, report.session)
        assert last.get("status") == cause.status
        assert last["at"].endswith("Z")
        for part in cause.says:
            assert part in last["message"]
        # How it ended (5) is told apart, and hides nothing.
        assert ended_of(stack.store)["key"] == "ERR_MAX_RUNTIME"
        counts = errors_of(stack.store).counts
        services = next(each for each in report.listeners if each.resource == "services")
        assert counts[cause.code.key] == services.errors[cause.code.key] >= 1
        assert counts["ERR_MAX_RUNTIME"] == 1
        kept = [each for each in history_of(stack.store) if each["resource"] == "services"]
        assert kept[0]["key"] == cause.code.key
        assert kept[0]["message"] == last["message"]
        assert kept[0].get("status") == cause.status
        assert report.document()["code"] == 5
        # I8: neither the token that was refused nor the one that is good is in any table.
        assert items_that_hold(stack.store, (SECRET, TOKEN)) == []


def test_code_7_is_persisted_where_no_connection_comes_in_time() -> None:
    # A listening socket whose backlog is full: Linux drops further SYNs, so connecting takes for ever.
    with socket.socket() as full, a_stack() as stack:
        full.bind(("127.0.0.1", 0))
        full.listen(0)
        address = full.getsockname()
        waiting = []
        for _ in range(3):
            one = socket.socket()
            one.setblocking(False)
            one.connect_ex(address)
            waiting.append(one)
        try:
            stack.add_cluster(server=f"http://127.0.0.1:{address[1]}")
            running = stack.start(connect_timeout_seconds=0.2)
            running.wait_for(lambda: last_of(stack.store).get("code") == 7)
            running.end()
        finally:
            for one in waiting:
                one.close()
        assert "no connection in time" in last_of(stack.store)["message"]
        assert errors_of(stack.store).counts["ERR_CONNECT_FAILED"] >= 1


def test_code_10_is_healed_by_one_fresh_token_from_a_file_that_changed(tmp_path: Path) -> None:
    secret = tmp_path / "token"
    secret.write_text(f"{SECRET}\n")
    with a_stack() as stack:
        stack.api.authority.set_tokens({SECRET: "admin"})
        stack.add_cluster(token=f"file:{secret}")
        running = stack.start()
        stack.api.requests.wait_for_count(1, resource="services", verb="watch")
        stack.api.requests.wait_for_count(1, resource="endpointslices", verb="watch")
        # The token is rotated: the server takes the new one only, and the watches have to begin again.
        secret.write_text("the-new-token\n")
        stack.api.authority.set_tokens({"the-new-token": "admin"})
        stack.api.sever()

        def watching_again(seen: Sequence[Any]) -> bool:
            refused = [n for n, request in enumerate(seen) if request.status == 401]
            again = (
                {r.resource for r in seen[refused[0] :] if r.verb == "watch" and r.status == 200} if refused else set()
            )
            return {"services", "endpointslices"} <= again

        stack.api.requests.wait_for(watching_again)
        running.end()
        # Once each at the most: both listeners share the token that the first refusal made fresh.
        refused = [r.resource for r in stack.api.requests.all() if r.status == 401]
        assert refused
        assert len(set(refused)) == len(refused)
        assert "ERR_REQUEST_DENIED" not in errors_of(stack.store).counts
        assert items_that_hold(stack.store, (SECRET, "the-new-token")) == []


def test_errors_of_one_listener_are_not_those_of_the_other() -> None:
    with a_stack() as stack:
        stack.api.authority.deny(resource="endpointslices")
        stack.add_cluster()
        running = stack.start()
        running.wait_for(lambda: last_of(stack.store, resource=Resource.ENDPOINTSLICES).get("code") == 10)
        running.end()
        assert last_of(stack.store) == {}
        assert "ERR_REQUEST_DENIED" not in errors_of(stack.store).counts


def test_counts_go_on_over_sessions_and_the_last_error_stays_until_another_comes() -> None:
    with a_stack() as stack:
        stack.add_cluster()
        rule = stack.api.faults.add(
            api_faults.Answer(503, "ServiceUnavailable", "shutting down"), resource="services", verb="list", times=1
        )
        first = stack.start()
        first.wait_for(lambda: rule.hits == 1 and bool(stack.api.requests.all(resource="services", verb="watch")))
        first_report = first.end(ErrorCode.MAX_RUNTIME)
        watches = len(stack.api.requests.all(resource="services", verb="watch"))
        second = stack.start()
        second.wait_for(lambda: len(stack.api.requests.all(resource="services", verb="watch")) > watches)
        second.end(ErrorCode.WORKER_EXITING)
        found = errors_of(stack.store)
        assert found.counts == {"ERR_REQUEST_STATUS": 1, "ERR_MAX_RUNTIME": 1, "ERR_WORKER_EXITING": 1}
        assert last_of(stack.store)["session"] == first_report.session
        assert ended_of(stack.store)["key"] == "ERR_WORKER_EXITING"
