"""Certificates by reference: what is read as what, and that nothing of a key is ever told (I8)."""

import os

import pytest

from harness.fakes.manual_clock import ManualClock
from kubesync.aws.secrets.certificates import SecretCertificates
from kubesync.aws.secrets.references import MAX_AGE_SECONDS, SecretReference, parse_secret_reference
from kubesync.domain.errors import HandshakeError, UsageError

CERTIFICATE = "-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----\n"
_KIND = "PRIVATE KEY"  # put together here, lest this file look like one that holds a key
KEY = f"-----BEGIN {_KIND}-----\nMIGH-the-key-itself\n-----END {_KIND}-----\n"
ENCRYPTED = KEY.replace("PRIVATE", "ENCRYPTED PRIVATE")


def a_reference(name: str) -> SecretReference:
    return parse_secret_reference(f"env:{name}", local=True)


@pytest.fixture(autouse=True)
def _nothing_in_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """And nothing is left there, whatever a test puts there."""
    for name in ("CA", "CERT", "KEY"):
        monkeypatch.setenv(name, "")
        monkeypatch.delenv(name)


def source(clock: ManualClock | None = None, /, *, key: bool = False, **environ: str) -> SecretCertificates:
    os.environ.update(environ)
    references = (
        a_reference("CA") if "CA" in environ else None,
        a_reference("CERT") if "CERT" in environ else None,
        a_reference("KEY") if key else None,
    )
    return SecretCertificates(references, lambda _service: None, clock or ManualClock())


def test_nothing_referred_to_is_nothing() -> None:
    assert (source().ca_pem(), source().client_pem()) == (None, None)


def test_certificate_and_key_in_one_place_or_in_two() -> None:
    assert source(CERT=CERTIFICATE + KEY).client_pem() == CERTIFICATE + KEY
    assert source(CERT=CERTIFICATE, KEY=KEY, key=True).client_pem() == f"{CERTIFICATE}\n{KEY}\n"


@pytest.mark.parametrize(
    ("environ", "key", "said"),
    [
        ({"CA": "nothing"}, False, "no CA certificate from env:CA: it holds no certificate in PEM form"),
        ({"CA": CERTIFICATE + KEY}, False, "no CA certificate from env:CA: it holds a private key: give certificates only"),
        ({"CERT": KEY}, False, "no client certificate from env:CERT: it holds no certificate in PEM form"),
        ({"CERT": CERTIFICATE}, False, ("no client certificate from env:CERT: it holds no private key: give the key's own "
         "reference with --client-key")),
        ({"CERT": CERTIFICATE, "KEY": CERTIFICATE}, True, "no client key from env:KEY: it holds no private key in PEM form"),
        ({"CERT": CERTIFICATE}, True, "no client key from env:KEY: the environment variable is not set"),
        ({"CERT": CERTIFICATE, "KEY": ENCRYPTED}, True, ("no client key from env:KEY: its private key is encrypted: store it "
         "without a passphrase")),
        ({"CERT": CERTIFICATE, "KEY": KEY + "é"}, True, "no client key from env:KEY: it is not PEM: PEM is ASCII only"),
    ],
)  # fmt: skip
def test_what_is_not_as_it_should_be_is_told_without_a_key_i8(environ: dict[str, str], key: bool, said: str) -> None:
    made = source(key=key, **environ)
    with pytest.raises(HandshakeError) as refused:
        made.ca_pem() if "CA" in environ else made.client_pem()
    assert refused.value.message == said
    assert "the-key-itself" not in repr(made) + str(refused.value)


def test_rotated_certificate_is_read_after_five_minutes_or_when_asked_for() -> None:
    clock = ManualClock()
    made = source(clock, CA=CERTIFICATE)
    assert made.ca_pem() == CERTIFICATE
    os.environ["CA"] = rotated = CERTIFICATE.replace("MIIB", "MIIC")
    assert made.ca_pem() == CERTIFICATE
    assert made.ca_pem(fresh=True) == rotated
    os.environ["CA"] = CERTIFICATE
    clock.advance(MAX_AGE_SECONDS)
    assert made.ca_pem() == CERTIFICATE
    # While it cannot be read again, the known one goes on being used.
    del os.environ["CA"]
    clock.advance(MAX_AGE_SECONDS)
    assert made.ca_pem() == CERTIFICATE
    with pytest.raises(HandshakeError):
        made.ca_pem(fresh=True)


def test_certificate_in_place_of_its_reference_is_refused_in_words_of_its_own() -> None:
    with pytest.raises(UsageError, match=r"a certificate is given by reference: .*, never as the certificate itself"):
        parse_secret_reference(CERTIFICATE, local=True, what="a certificate")
