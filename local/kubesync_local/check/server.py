"""Tests name, connection, TLS, sign-in, rights, version and clock of one API server.

    address ── name ── connection ── tls ── credentials ── authentication ──┬── list, watch of each resource, events
                                                                            └── version, clock
A failed step ends the row; the two branches at its end are independent. Requests use the session's own client, so that a code here
is the code that a session would report.
"""

import ipaddress
import socket
import ssl
from collections.abc import Callable, Collection, Iterator
from contextlib import closing
from dataclasses import dataclass
from typing import Final

from kubesync.actors.scheduler import Clock
from kubesync.aws.tables.control.clusters import ClusterConfig
from kubesync.domain.credential_ends import Credential, Validity
from kubesync.domain.errors import ConnectError, DeniedError, DomainNameError, HandshakeError, ListenerError
from kubesync.domain.objects import Resource
from kubesync.kubernetes.transport.client import ApiClient, ClusterAccess
from kubesync.kubernetes.transport.connections import Phase, build_tls_context, verified_chain
from kubesync.kubernetes.transport.credential_ends import CredentialEnds
from kubesync.kubernetes.transport.failures import FOREIGN_ERRORS, classify
from kubesync.kubernetes.transport.urls import Server, parse_server
from kubesync_local.check import advice
from kubesync_local.check.certificates import in_words, near_end, shown_by
from kubesync_local.check.identity import authentication_step, credentials_step
from kubesync_local.check.rights import rights_steps
from kubesync_local.check.step import Result, Step, failed, passed, skipped, warned
from kubesync_local.check.version import version_steps
from kubesync_local.registration.eks_servers import is_eks_server

_ROW: Final = ("address", "name", "connection", "tls", "credentials", "authentication")
_NOT_TRIED: Final = "not tried: a step before it failed"


@dataclass(frozen=True, slots=True)
class ServerCheck:
    """The check of one cluster.

    Args:
        access: how a session would reach it; a function, because that may fail.
        served: what sessions have listed.
    """

    config: ClusterConfig
    access: Callable[[], ClusterAccess]
    clock: Clock
    served: Collection[Resource] = ()

    def run(self) -> Iterator[Step]:
        """The steps, each as soon as it is done."""
        done: list[Step] = []
        for step in self._row():
            done.append(step)
            yield step
        names = [step.name for step in done]
        yield from (skipped(name, _NOT_TRIED) for name in _ROW if name not in names)
        if done[-1].result is Result.FAILED:
            yield from (skipped(name, _NOT_TRIED) for name in ("rights", "version", "clock"))
            return
        yield from rights_steps(self._api, self.config, self.clock, self.served)
        with closing(self._api()) as api:
            yield from version_steps(api, self.config, self.clock)

    def _api(self) -> ApiClient:
        return ApiClient(self.access(), self.clock)

    def _row(self) -> Iterator[Step]:
        """The first steps, up to one that fails."""
        try:
            access = self.access()
            server = parse_server(access.server)
        except ListenerError as error:
            unusable = isinstance(error, DeniedError)  # a kubeconfig that is gone or broken
            yield failed("address", error, advice.KUBECONFIG if unusable else advice.of_error(error))
            return
        yield _address_step(self.config, server.url(""))
        addresses = _resolved(server)
        if isinstance(addresses, ListenerError):
            yield failed("name", addresses, advice.of_error(addresses))
            return
        yield passed("name", _as_named(server, addresses))
        step, sock = _connection(server, addresses, access.policy.connect_timeout, self.clock)
        yield step
        if sock is None:
            return
        with sock:
            try:
                step = _tls(server, access, sock, self.clock, kubeconfig=self.config.kubeconfig is not None)
            except DeniedError as error:  # an exec plugin gives the client certificate
                step = failed("credentials", error, advice.of_credentials(error, "kubeconfig"))
        yield step
        if step.result is Result.FAILED:
            return
        step = credentials_step(self.config, access, self.clock)
        yield step
        if step.result is Result.FAILED:
            return
        with closing(self._api()) as api:
            yield authentication_step(api, self.config)


def _address_step(config: ClusterConfig, url: str) -> Step:
    if config.eks is not None and not is_eks_server(url):
        advice = "whatever answers there gets a token of this AWS identity: register the cluster again without --server"
        return warned("address", f"{url} has not the form of an EKS endpoint", advice)
    return passed("address", url)


def _resolved(server: Server) -> list[str] | DomainNameError:
    try:
        found = socket.getaddrinfo(server.host, server.port, 0, socket.SOCK_STREAM)
    except (OSError, UnicodeError) as error:
        classified = classify(error, Phase.CONNECT, server.authority)
        return classified if isinstance(classified, DomainNameError) else DomainNameError(classified.message)
    return list(dict.fromkeys(str(address[0]) for *_, address in found))


def _as_named(server: Server, addresses: list[str]) -> str:
    try:
        ipaddress.ip_address(server.host)
    except ValueError:
        return f"{server.host} is {', '.join(addresses)}"
    return f"{server.host} is an IP address"


def _connection(
    server: Server, addresses: list[str], seconds: float, clock: Clock
) -> tuple[Step, socket.socket | None]:
    """To the first address that answers: a session also tries them one by one."""
    error: ListenerError = ConnectError(f"{server.authority}: the server cannot be reached")
    for address in addresses:
        began = clock.monotonic()
        try:
            sock = socket.create_connection((address, server.port), seconds)
        except OSError as refused:
            error = classify(refused, Phase.CONNECT, server.authority)
            continue
        milliseconds = max(1, round((clock.monotonic() - began) * 1000))
        return passed("connection", f"{address} port {server.port} answered in {milliseconds} ms"), sock
    return failed("connection", error, advice.of_connection(error)), None


def _tls(server: Server, access: ClusterAccess, sock: socket.socket, clock: Clock, *, kubeconfig: bool) -> Step:
    if server.scheme == "http":
        return skipped("tls", "plain HTTP, on loopback only")
    ends = CredentialEnds(clock)
    try:
        context = _context(access, ends)
    except HandshakeError as error:
        return failed("tls", error, advice.of_error(error, kubeconfig=kubeconfig))
    except (OSError, ValueError):
        unreadable = HandshakeError("the CA certificate or the client certificate cannot be read as PEM")
        return failed("tls", unreadable, "give them in PEM form, and the key without a passphrase")
    sock.settimeout(access.policy.connect_timeout)
    try:
        with context.wrap_socket(sock, server_hostname=access.tls_server_name or server.host) as tls:
            spoken = tls.version() or "TLS"
            if not access.insecure_skip_tls_verify:
                ends.note_chain(verified_chain(tls))
    except FOREIGN_ERRORS as error:
        refused = classify(error, Phase.HANDSHAKE, server.authority)
        known = shown_by(server, access.tls_server_name) if isinstance(error, ssl.SSLCertVerificationError) else None
        step = failed("tls", refused, advice.of_error(refused, kubeconfig=kubeconfig))
        return (
            step
            if known is None
            else Step("tls", step.result, f"{step.details}: {in_words(known)}", step.code, step.advice)
        )
    shown = shown_by(server, access.tls_server_name)
    words = f"{spoken}, {in_words(shown)}" if shown is not None else spoken
    if near := _near(ends, clock.epoch_seconds()):
        return warned("tls", f"{words}; {near}", "docs/runbook.md#credentialsend says what to do")
    return passed("tls", f"{words}; NOT VERIFIED" if access.insecure_skip_tls_verify else words)


def _near(ends: CredentialEnds, now: float) -> str:
    known = ends.known()
    found = [(what, max(known.get(what, ()), default=None)) for what in (Credential.SERVER_CERTIFICATE, Credential.CA)]
    words = [(what, near_end(Validity(end), now)) for what, end in found if end is not None]
    return ", ".join(f"{what} {near}" for what, near in words if near)


def _context(access: ClusterAccess, ends: CredentialEnds) -> ssl.SSLContext:
    source = access.certificates
    ca_pem = source.ca_pem() if source is not None else None
    client_pem = source.client_pem() if source is not None else None
    ends.note_configuration(verified=not access.insecure_skip_tls_verify, ca_pem=ca_pem or access.ca_pem)
    return build_tls_context(
        ca_pem=ca_pem or access.ca_pem,
        insecure_skip_tls_verify=access.insecure_skip_tls_verify,
        client_pem=client_pem or access.client_pem,
    )
