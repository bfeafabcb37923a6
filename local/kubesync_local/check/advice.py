"""What to do about a failed step, in one sentence."""

from typing import Final

from kubesync.domain.errors import TOO_LONG, TOO_LONG_ADVICE, DeniedError, ErrorCode, ListenerError, StatusError
from kubesync.domain.objects import SERVICE, Resource

# The first text that the message contains (in lower case) decides. The texts are OpenSSL's.
_TLS: Final = (
    ("self-signed certificate", "give the cluster's own CA: --ca-file or --ca"),
    ("unable to get local issuer", "give the cluster's own CA: --ca-file or --ca"),
    ("unable to get issuer", "give the cluster's own CA: --ca-file or --ca"),
    ("certificate signature failure", "the CA was created again with the same name: give the new one, --ca-file or --ca"),
    ("has expired", "renew the API server's certificate (kubeadm certs renew apiserver), or correct this machine's clock"),
    ("not yet valid", "correct this machine's clock if it is behind; else the CA's clock was ahead"),
    ("mismatch", "register the server by a name or address that is in the certificate"),
    ("is not valid for", "register the server by a name or address that is in the certificate"),
    ("certificate required", "the server asks for a client certificate: --client-certificate"),
    ("alert", "the server refuses the client certificate: check that its client CA signed it, and that it has not expired"),
    ("wrong version number", "the server there does not speak TLS: check the port"),
    ("record layer failure", "the server there does not speak TLS: check the port"),
    ("no ca certificate from", "let the caller read it and its key; the reference is the one given with --ca"),
    ("no client", "let the caller read it and its key"),
)  # fmt: skip
# The options of `cluster add` that a kubeconfig excludes.
_IN_KUBECONFIG: Final = {
    "give the cluster's own CA: --ca-file or --ca": "give the cluster's own CA in the kubeconfig: certificate-authority-data",
    "the CA was created again with the same name: give the new one, --ca-file or --ca": (
        "the CA was created again with the same name: put the new one into the kubeconfig, certificate-authority-data"
    ),
    "register the server by a name or address that is in the certificate": (
        "in the kubeconfig, name the server by a name or address that is in the certificate"
    ),
    "the server asks for a client certificate: --client-certificate": (
        "the server asks for a client certificate: give the kubeconfig's user one"
    ),
}
_BY_CODE: Final = {
    ErrorCode.PARSE_DOMAIN: "check --server, and that its name resolves where kubesync runs (private names: in its VPC)",
    ErrorCode.SSL_HANDSHAKE: "the server there is not an API server, or a device in between ends TLS",
    ErrorCode.REQUEST_URI: "the server there is not an API server, or a proxy or load balancer in between drops requests",
    ErrorCode.REQUEST_STATUS: "look at the API server's own log",
    ErrorCode.READ_BODY: "a proxy or load balancer in between delays or cuts off what the API server sends",
}
KUBECONFIG: Final = "correct the file, or register the cluster again with a kubeconfig and context that exist here"
UNGUARDED: Final = (
    "Service default/kubernetes cannot be read: if another cluster answers at this address, nobody notices, and up to 30 % of the objects "
    "count as deleted at once"
)
"""What is missing where neither a list nor a question shows the uid that identifies a cluster (I5)."""
ABSENT: Final = "leave the source out of --sources, or install its API: sessions look for it every 30 s"
IDENTITY_BY_GET: Final = "let it get Service default/kubernetes (docs/cluster-access.yaml)"
IDENTITY: Final = "let it list Services in namespace default too (docs/cluster-access.yaml)"


# Of references to secrets: aws.secrets.references.
_REFERENCES: Final = (
    ("from file:", "no such file", "create the file, or register the cluster again with another reference"),
    ("from file:", "", "let this user read the file; it holds the secret and nothing else"),
    ("from env:", "", "export the variable where kubesync runs; on Lambda use secretsmanager: or ssm:"),
    ("", "not a json object", "store a JSON object, or register the cluster again with secretsmanager:NAME, without #KEY"),
    ("", "has no text under the key", "store the secret under that key, or name another key: secretsmanager:NAME#KEY"),
    ("", "no such secret", "create the secret, or check its name and the region"),
    ("", "no such parameter", "create the parameter, or check its name and the region"),
    ("", "another api server", "correct `server` in the secret, or register the server that it names"),
    ("", "could not be reached", "check the network, the region and AWS_ENDPOINT_URL_SECRETS_MANAGER or AWS_ENDPOINT_URL_SSM"),
    ("", "not a token on one line", "store the token alone, on one line"),
    ("no token for eks", "", "let this identity call AWS STS; check its credentials, --role-arn and --external-id"),
)  # fmt: skip


def of_connection(error: ListenerError) -> str:
    """For a connection that cannot be made."""
    if "refused" in error.message:
        return "nothing listens there: check the address and port, and that the API server runs"
    return "a firewall, security group or missing route blocks the way: see docs/clusters.md, private addresses"


def of_error(error: ListenerError, *, kubeconfig: bool = False) -> str:
    """For any other error on the way to an answer. ``kubeconfig``: that file says how the cluster is reached."""
    if error.code is ErrorCode.CONNECT_FAILED:
        return of_connection(error)
    if error.code is ErrorCode.SSL_HANDSHAKE:
        message = error.message.lower()
        for text, what in _TLS:
            if text in message:
                return _IN_KUBECONFIG.get(what, what) if kubeconfig else what
    if error.code is ErrorCode.READ_BODY and TOO_LONG in error.message:
        return TOO_LONG_ADVICE
    return _BY_CODE.get(error.code, "")


def of_credentials(error: ListenerError, signs_in_by: str) -> str:
    """For a token or certificate that cannot be had."""
    if signs_in_by != "kubeconfig":
        message = error.message.lower()
        for what, why, then in _REFERENCES:
            if what in message and why in message:
                return then
        return "let the caller read it: this identity, and the functions' roles"
    if "is not installed here" in error.message:
        return (
            "install the plugin where sessions run, so that PATH leads to it: the kubeconfig names it under users, exec"
        )
    if "exec plugin" in error.message:
        return "run kubectl with this kubeconfig and context: it runs the same plugin, and shows what the plugin says"
    return "kubectl should fail with this kubeconfig and context too: sign in again, or register the cluster with another file"


def of_authentication(error: ListenerError, signs_in_by: str) -> str:
    """For a server that does not accept the sign-in."""
    if not isinstance(error, DeniedError):
        return of_error(error)
    return {
        "eks": "create an access entry for the caller's role (docs/clusters.md, EKS), and check that --eks names this cluster",
        "aws-identity": "let the server trust this account's issuer for this audience (docs/clusters.md, AWS identity)",
        "token": "check that it is a token of this cluster and that its ServiceAccount exists, or store a new one at the reference",
        "certificate": "this cluster's client CA did not sign it, or it has expired: issue a new one",
        "kubeconfig": "kubectl should fail with this kubeconfig and context too: sign in again",
    }.get(signs_in_by, "give --token, --eks or --client-certificate: the server needs a sign-in")


def of_verb(error: ListenerError, verb: str, resource: Resource) -> str:
    """For a request that is refused though the sign-in works."""
    from kubesync.domain.sources.registry import kind_of
    from kubesync.kubernetes.wire.registry import WIRE  # 0.1 s, which `status` and others need not take

    # The core group's path is /api/v1, any other's /apis/GROUP/VERSION.
    _, _, *group = WIRE[resource].path.split("/")
    what = f"{resource} of {group[0]}" if len(group) > 1 else str(resource)
    if isinstance(error, DeniedError) and error.status == 403:
        kind = kind_of(resource)
        part = "" if kind.name == SERVICE else f"-{kind.option}"
        return f"allow {verb} on {what}: kubectl apply -f docs/cluster-access{part}.yaml"
    if isinstance(error, StatusError) and error.status == 404 and resource is Resource.ENDPOINTSLICES:
        return "this API server has no EndpointSlices: register the cluster with --endpoints-source endpoints"
    if isinstance(error, StatusError) and error.status == 404 and len(group) > 1:
        return f"this API server does not know {what}: install their CustomResourceDefinition"
    if isinstance(error, StatusError) and error.status == 404:
        return "the server there is not an API server: check the path of --server"
    return of_error(error)
