"""How a function makes Lambda send it SIGTERM: registered as an extension in time, and no worse off where that fails."""

import http.client
import socket

from harness.waiting import PATIENCE_SECONDS
from harness.wire.runtime_api import RuntimeApi
from kubesync.bootstrap.shutdown import register_for_sigterm


def test_function_registers_for_no_event_and_the_init_phase_ends() -> None:
    with RuntimeApi("watch") as api:
        thread = register_for_sigterm({"AWS_LAMBDA_RUNTIME_API": api.address})
        assert thread is not None
        assert api.extensions == {"kubesync": []}
        assert not api.ready.is_set()  # the runtime itself has not asked yet
        invocation = api.invoke({}, 10)
        _ask_for_an_invocation(api)
        assert api.ready.wait(PATIENCE_SECONDS)
        assert thread.is_alive()
        assert not invocation.done.is_set()
    thread.join(PATIENCE_SECONDS)
    assert not thread.is_alive()


def test_function_runs_without_an_extension_where_it_is_too_late_for_one() -> None:
    with RuntimeApi("watch") as api:
        api.invoke({}, 10)
        _ask_for_an_invocation(api)
        assert register_for_sigterm({"AWS_LAMBDA_RUNTIME_API": api.address}) is None
        assert api.extensions == {}


def test_function_runs_without_an_extension_where_nobody_answers() -> None:
    with socket.create_server(("127.0.0.1", 0)) as nobody:
        port = nobody.getsockname()[1]
    assert register_for_sigterm({"AWS_LAMBDA_RUNTIME_API": f"127.0.0.1:{port}"}) is None


def test_nothing_is_registered_off_lambda() -> None:
    assert register_for_sigterm({}) is None


def _ask_for_an_invocation(api: RuntimeApi) -> None:
    connection = http.client.HTTPConnection(api.address, timeout=PATIENCE_SECONDS)
    try:
        connection.request("GET", "/2018-06-01/runtime/invocation/next")
        assert connection.getresponse().read() == b"{}"
    finally:
        connection.close()
