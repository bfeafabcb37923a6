"""The listening socket and its threads: one per connection. All end when it stops."""

import contextlib
import socket
import ssl
import threading
from collections.abc import Callable
from typing import Final

from kubesync_local.standins.apiserver.transport.connection import Connection, accept_connection
from kubesync_local.standins.apiserver.transport.faults import BrokenConnectionError

_HANDSHAKE_SECONDS: Final = 5.0
_JOIN_SECONDS: Final = 10.0


class Listener:
    """Accepts connections and runs ``serve`` for each in a thread of its own.

    ``serve`` returns when the connection is done. BrokenConnectionError and OSError also end the connection.
    """

    def __init__(self, host: str, port: int, tls: ssl.SSLContext | None, serve: Callable[[Connection], None]) -> None:
        """Raises OSError if the address cannot be used."""
        self._serve = serve
        self._tls = tls
        self._lock = threading.Lock()
        self._stopping = False
        self._connections: set[Connection] = set()
        self._pending: set[socket.socket] = set()
        self._threads: set[threading.Thread] = set()
        self._number = 0
        self._socket = socket.create_server((host, port), backlog=128)
        self.address: tuple[str, int] = self._socket.getsockname()[:2]
        self._acceptor = threading.Thread(target=self._accept, name="apiserver-accept", daemon=True)

    def start(self) -> None:
        """Start accepting."""
        self._acceptor.start()

    def sever(self) -> None:
        """Drop every live connection; new ones are accepted as before."""
        with self._lock:
            connections = list(self._connections)
        for connection in connections:
            connection.drop()

    @property
    def live_connections(self) -> int:
        """How many connections are open now."""
        with self._lock:
            return len(self._connections)

    def stop(self) -> None:
        """Stop accepting, drop everything, wait for the threads."""
        with self._lock:
            if self._stopping:
                return
            self._stopping = True
            pending = list(self._pending)
        # Closing a socket does not wake an accept that waits on it; a connection does.
        with contextlib.suppress(OSError), socket.create_connection(self.address, 1.0):
            pass
        self._acceptor.join(_JOIN_SECONDS)
        self._socket.close()
        for sock in pending:
            with contextlib.suppress(OSError):
                sock.shutdown(socket.SHUT_RDWR)
        self.sever()
        with self._lock:
            threads = list(self._threads)
        for thread in threads:
            thread.join(_JOIN_SECONDS)

    def _accept(self) -> None:
        while True:
            try:
                sock, _ = self._socket.accept()
            except OSError:
                return
            with self._lock:
                if self._stopping:
                    sock.close()
                    return
                self._number += 1
                thread = threading.Thread(
                    target=self._run, args=(sock, self._number), name=f"apiserver-{self._number}", daemon=True
                )
                self._threads.add(thread)
                self._pending.add(sock)
            thread.start()

    def _track(self, connection: Connection) -> None:
        with self._lock:
            self._connections.add(connection)
            stopping = self._stopping
        if stopping:
            connection.drop()

    def _run(self, sock: socket.socket, number: int) -> None:
        connection = None
        reset = False
        try:
            connection = accept_connection(sock, number, self._tls, _HANDSHAKE_SECONDS, self._track)
            self._serve(connection)
        except BrokenConnectionError as error:
            reset = error.reset
        except (OSError, ValueError):
            pass  # The client has gone, or did not speak TLS: there is nobody to report to.
        finally:
            if connection is not None:
                connection.close(reset=reset)
            with self._lock:
                if connection is not None:
                    self._connections.discard(connection)
                self._pending.discard(sock)
                self._threads.discard(threading.current_thread())
