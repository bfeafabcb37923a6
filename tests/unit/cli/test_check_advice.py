"""What the check advises about an error: ``kubesync_local.check.advice``."""

import pytest

from kubesync.domain.errors import BodyError, DeniedError, HandshakeError
from kubesync_local.check.advice import of_credentials, of_error

MEMORY = "raise the function's memory (MemorySize), or find out why the server sends so much"
BETWEEN = "a proxy or load balancer in between delays or cuts off what the API server sends"


@pytest.mark.parametrize(
    ("message", "said"),
    [
        ("api.test:6443: a body is longer than 4000000 bytes", MEMORY),
        ("the list of services is longer than 96000000 bytes", MEMORY),
        ("api.test:6443: the body broke off", BETWEEN),
    ],
)
def test_answer_that_is_too_long_is_no_fault_of_what_stands_in_between(message: str, said: str) -> None:
    assert of_error(BodyError(message)) == said


@pytest.mark.parametrize(
    ("message", "said"),
    [
        ("no token from file:/t: No such file or directory", "create the file"),
        ("no token from file:/t: Permission denied", "let this user read the file"),
        ("no token from env:T: the environment variable is not set", "export the variable"),
        (
            "no token from secretsmanager:s#k: the secret is not a JSON object: leave out the #KEY",
            "store a JSON object",
        ),
        ("no token from secretsmanager:s#k: the secret has no text under the key k", "store the secret under that key"),
        ("no token from secretsmanager:s: there is no such secret in this account and region", "create the secret"),
        ("no token from ssm:p: there is no such parameter in this account and region", "create the parameter"),
        ("no token from secretsmanager:s: AWS could not be reached (ConnectTimeoutError)", "check the network"),
        (
            "no token from secretsmanager:s: it is for another API server: its `server` is not the one",
            "correct `server`",
        ),
        ("no token from ssm:p: it is empty, or not a token on one line", "store the token alone"),
        (
            "no token from ssm:p: access is denied: allow the role to read it, and to use its key",
            "let the caller read it",
        ),
        ("no token for EKS cluster e: ClientError", "let this identity call AWS STS"),
        ("no client certificate from ssm:c: access is denied: allow the role", "let the caller read it"),
    ],
)
def test_advice_on_credentials_fits_their_cause(message: str, said: str) -> None:
    assert of_credentials(DeniedError(message), "token").startswith(said)


def test_options_that_a_kubeconfig_excludes_are_not_advised_with_one() -> None:
    for message in (
        "self-signed certificate",
        "hostname mismatch",
        "certificate signature failure",
        "certificate required",
    ):
        said = of_error(HandshakeError(message)), of_error(HandshakeError(message), kubeconfig=True)
        assert said[0] != said[1]
        assert "--" not in said[1]
        assert "kubeconfig" in said[1]
