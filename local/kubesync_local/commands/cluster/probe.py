"""Asks the API server of a cluster that is to be registered, and says in words why it does not answer as it should."""

from typing import Final

from kubesync.aws.tables.control.clusters import ClusterConfig
from kubesync.domain.errors import BodyError, DeniedError, HandshakeError, ListenerError, StatusError
from kubesync.domain.objects import Resource
from kubesync.kubernetes.ports import ReflectorPolicy
from kubesync.kubernetes.transport.client import ApiClient
from kubesync_local.registration.endpoints_source import choose_endpoints_source
from kubesync_local.terminal.output import remark
from kubesync_local.workplace.workplace import Workplace

_POLICY: Final = ReflectorPolicy(connect_timeout=3, read_timeout=5)
# How the errors of certificates by reference begin (aws.secrets.certificates). They are no answers of a server.
_NOT_READ: Final = ("no CA certificate from", "no client certificate from", "no client key from")


def endpoints_source(given: str, config: ClusterConfig, work: Workplace) -> tuple[Resource, str]:
    """Where its endpoints are read from; with ``auto`` its server decides. And why the server does not answer; empty if it does."""
    if given != "auto":
        return Resource(given), ""
    try:
        return _asked(config, work), ""
    except ListenerError as error:
        return Resource.ENDPOINTSLICES, f"{why_no_answer(config.name, error)}; using endpointslices"


def remark_on_server(given: str, config: ClusterConfig, work: Workplace) -> None:
    """Say that the server of a registered cluster does not answer. With ``auto`` it was asked already."""
    if given == "auto" or config.disabled:
        return
    try:
        _asked(config, work)
    except ListenerError as error:
        remark_on(config.name, why_no_answer(config.name, error))


def remark_on(name: str, why: str, *, registered: bool = True) -> None:
    """Say why a server does not answer, and what tests it. Nothing if ``why`` is empty."""
    if why:
        remark(f"note: {why}" + (f"; `kubesync cluster check {name}` tests it" if registered else ""))


def why_no_answer(name: str, error: ListenerError) -> str:
    """In one line, by its cause."""
    match error:
        case DeniedError(status=403):
            what = f"{name} does not let kubesync read now"
        case DeniedError(status=int()):
            what = f"kubesync cannot sign in to {name} now"
        case DeniedError():  # nothing was sent
            what = f"the credentials of {name} cannot be read now"
        case HandshakeError() if error.message.startswith(_NOT_READ):
            what = f"the certificates of {name} cannot be read now"
        case HandshakeError():
            what = f"there is no TLS connection to {name} now"
        case StatusError():
            what = f"{name} answers with an error now"
        case BodyError():
            what = f"the answer of {name} cannot be read now"
        case _:
            what = f"{name} cannot be reached now"
    return f"{what} ({error.code.key}: {error.message})"


def _asked(config: ClusterConfig, work: Workplace) -> Resource:
    api = ApiClient(work.application.access()(config, _POLICY), work.application.scheduler)
    try:
        return choose_endpoints_source(api)
    finally:
        api.close()
