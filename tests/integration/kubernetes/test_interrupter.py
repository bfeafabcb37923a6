"""The moment between a stop and a socket: whichever comes first, nothing blocks afterwards."""

import socket

import pytest

from kubesync.actors.threads import ThreadScheduler
from kubesync.kubernetes.transport.connections import Interrupter, StoppedError


def test_socket_made_after_the_stop_is_refused() -> None:
    interrupter = Interrupter(ThreadScheduler())
    interrupter.interrupt()
    with socket.socket() as sock, pytest.raises(StoppedError):
        interrupter.watch_socket(sock)
    interrupter.release()


def test_socket_made_before_the_stop_is_shut_down() -> None:
    interrupter = Interrupter(ThreadScheduler())
    ours, theirs = socket.socketpair()
    with ours, theirs:
        ours.settimeout(10.0)
        interrupter.watch_socket(ours)
        interrupter.interrupt()
        assert ours.recv(1) == b""
        interrupter.release()


def test_socket_that_was_let_go_is_left_alone() -> None:
    interrupter = Interrupter(ThreadScheduler())
    ours, theirs = socket.socketpair()
    with ours, theirs:
        interrupter.release(interrupter.watch_socket(ours))
        interrupter.interrupt()
        theirs.settimeout(10.0)
        ours.sendall(b"x")
        assert theirs.recv(1) == b"x"


def test_handle_of_an_older_connection_does_not_let_go_of_the_newer() -> None:
    interrupter = Interrupter(ThreadScheduler())
    first, second = socket.socketpair()
    with first, second:
        old = interrupter.watch_socket(first)
        interrupter.watch_socket(second)
        interrupter.release(old)
        second.settimeout(10.0)
        interrupter.interrupt()
        assert second.recv(1) == b""
        interrupter.release()
