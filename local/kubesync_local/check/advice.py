"""What to do about a failed step, in one sentence."""

from __future__ import annotations

from typing import Final

from kubesync.domain.errors import DeniedError, ErrorCode, ListenerError, StatusError
from kubesync.domain.objects import Resource

# The first that is in the message, lower-case, decides. The texts are OpenSSL's.
_TLS: Final = (
    ("self-signed certificate", "give the cluster's own authority: --ca-file or --ca"),
    ("unable to get local issuer", "give the cluster's own authority: --ca-file or --ca"),
    ("unable to get issuer", "give the cluster's own authority: --ca-file or --ca"),
    ("certificate signature failure", "the authority was made anew with the same name: give the present one, --ca-file or --ca"),
    ("has expired", "renew the API server's certificate (kubeadm certs renew apiserver), or mend this machine's clock"),
    ("not yet valid", "this machine's clock is behind, or the certificate's authority's was ahead"),
    ("mismatch", "register the server by a name or address that is in the certificate"),
    ("is not valid for", "register the server by a name or address that is in the certificate"),
    ("certificate required", "the server asks for a client certificate: --client-certificate"),
    ("alert", "the server does not accept our client certificate: is it of its own client authority, and in date?"),
    ("wrong version number", "what answers there speaks no TLS: check the port"),
    ("record layer failure", "what answers there speaks no TLS: check the port"),
    ("no ca certificate from", "allow reading it, and its key, to who asks; the reference is the one given with --ca"),
    ("no client", "allow reading it, and its key, to who asks"),
)  # fmt: skip
_BY_CODE: Final = {
    ErrorCode.PARSE_DOMAIN: "check --server, and whether this name resolves where kubesync runs (private names: in its VPC)",
    ErrorCode.SSL_HANDSHAKE: "what answers there is no API server, or a device in between ends TLS",
    ErrorCode.REQUEST_URI: "what answers there is no API server, or a proxy or load balancer in between drops requests",
    ErrorCode.REQUEST_STATUS: "look at the API server's own log",
    ErrorCode.READ_BODY: "a proxy or load balancer in between holds back or cuts off what the API server sends",
}
_GROUP: Final = {Resource.ENDPOINTSLICES: "endpointslices of discovery.k8s.io"}


def of_connection(error: ListenerError) -> str:
    """For a connection that cannot be made."""
    if "refused" in error.message:
        return "nothing listens there: check address and port, and that the API server runs"
    return "a firewall, security group or missing route is in the way: see docs/clusters.md, private addresses"


def of_error(error: ListenerError) -> str:
    """For whatever else went wrong on the way to an answer."""
    if error.code is ErrorCode.CONNECT_FAILED:
        return of_connection(error)
    if error.code is ErrorCode.SSL_HANDSHAKE:
        said = error.message.lower()
        for text, what in _TLS:
            if text in said:
                return what
    return _BY_CODE.get(error.code, "")


def of_authentication(error: ListenerError, signs_in_by: str) -> str:
    """For a server that does not know us."""
    if not isinstance(error, DeniedError):
        return of_error(error)
    return {
        "eks": "make an access entry for the role that asks (docs/clusters.md, EKS), and check that --eks names this cluster",
        "token": "is it a token of this cluster, and was its ServiceAccount not deleted? put a new one where the reference points",
        "certificate": "it is not of this cluster's client authority, or has expired: issue a new one",
        "kubeconfig": "kubectl with this kubeconfig and context should fail likewise: sign in anew",
    }.get(signs_in_by, "give --token, --eks or --client-certificate: nobody is let in without")


def of_verb(error: ListenerError, verb: str, resource: Resource) -> str:
    """For a request that is refused though the server knows us."""
    what = _GROUP.get(resource, resource.value)
    if isinstance(error, DeniedError) and error.status == 403:
        return f"allow {verb} on {what}: kubectl apply -f docs/cluster-access.yaml"
    if isinstance(error, StatusError) and error.status == 404 and resource is Resource.ENDPOINTSLICES:
        return "this API server has none: register the cluster with --endpoints-source endpoints"
    if isinstance(error, StatusError) and error.status == 404:
        return "what answers there is no API server: check the path of --server"
    return of_error(error)
