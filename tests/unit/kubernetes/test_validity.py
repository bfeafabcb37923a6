"""Dates of certificates and tokens: literal ones, and what hostile bytes come to."""

import base64
import datetime as dt
import json
from functools import cache

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, ed25519
from cryptography.x509.oid import NameOID
from hypothesis import example, given, strategies as st

from kubesync.domain.credential_ends import Validity
from kubesync.kubernetes.transport.credential_ends import validities_in_pem, validity_of_certificate, validity_of_token

# openssl ca -selfsign -startdate 20260101000000Z -enddate 20350607080910Z, with an Ed25519 key
BY_OPENSSL = """\
-----BEGIN CERTIFICATE-----
MIHkMIGXAhR5ZttsscakPgWERyoEmh7Y+T4ZnjAFBgMrZXAwFTETMBEGA1UEAwwK
a3ViZXJuZXRlczAeFw0yNjAxMDEwMDAwMDBaFw0zNTA2MDcwODA5MTBaMBUxEzAR
BgNVBAMMCmt1YmVybmV0ZXMwKjAFBgMrZXADIQD2lbUfhTordtm+TSsErSNVfc7e
E/teq1ZtkrCcaGUxfjAFBgMrZXADQQDZGi66ptYNm4nY7rBDzepM1+RRUaijUplu
A11+gRxFIoaojgdwVhJ9LCzpV3kZ3qAi4pcGJhfK5kfFKUep9C8K
-----END CERTIFICATE-----
"""


def utc(*parts: int) -> dt.datetime:
    return dt.datetime(*parts, tzinfo=dt.UTC)  # type: ignore[misc, arg-type]


def a_certificate(begins: dt.datetime, ends: dt.datetime, *, rounds: int = 0) -> x509.Certificate:
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "kubernetes" * 6)])
    builder = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(begins)
        .not_valid_after(ends)
    )
    for number in range(rounds):  # longer than 64 KiB: lengths of three bytes
        builder = builder.add_extension(
            x509.UnrecognizedExtension(x509.ObjectIdentifier(f"1.2.3.{number}"), bytes(10_000)), critical=False
        )
    return builder.sign(key, hashes.SHA256())


def der(certificate: x509.Certificate) -> bytes:
    return certificate.public_bytes(serialization.Encoding.DER)


@cache
def a_good_one() -> bytes:
    return der(a_certificate(utc(2026, 1, 1), utc(2035, 6, 7, 8, 9, 10)))


@pytest.mark.parametrize(
    ("begins", "ends", "validity"),
    [
        (utc(2020, 1, 1), utc(2035, 6, 7, 8, 9, 10), Validity(2064816550.0, 1577836800.0)),
        (utc(2020, 1, 1), utc(2049, 12, 31, 23, 59, 59), Validity(2524607999.0, 1577836800.0)),
        (utc(2020, 1, 1), utc(2050, 1, 1), Validity(2524608000.0, 1577836800.0)),
        (utc(1960, 1, 1), utc(9999, 12, 31, 23, 59, 59), Validity(253402300799.0, -315619200.0)),
    ],
)
def test_dates_of_a_certificate(begins: dt.datetime, ends: dt.datetime, validity: Validity) -> None:
    assert validity_of_certificate(der(a_certificate(begins, ends))) == validity


def test_long_certificate() -> None:
    made = a_certificate(utc(2020, 1, 1), utc(2030, 1, 1), rounds=8)
    assert len(der(made)) > 65_536
    assert validity_of_certificate(der(made)) == Validity(1893456000.0, 1577836800.0)


def test_certificate_made_by_openssl() -> None:
    assert validities_in_pem(BY_OPENSSL) == [Validity(2064816550.0, 1767225600.0)]


def test_bundle_in_order_without_what_cannot_be_read() -> None:
    one, two = (
        a_certificate(utc(2020, 1, 1), ends).public_bytes(serialization.Encoding.PEM).decode()
        for ends in (utc(2050, 1, 1), utc(2030, 1, 1))
    )
    broken = "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"
    odd = "-----BEGIN CERTIFICATE-----\n%%%A\n-----END CERTIFICATE-----\n"
    key = ed25519.Ed25519PrivateKey.generate().private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    found = validities_in_pem(f"# the old one\n{one}{broken}{odd}\n{key.decode()}{two}")
    assert [each.ends_at for each in found] == [2524608000.0, 1893456000.0]
    assert validities_in_pem("") == validities_in_pem("no certificate") == []


@given(st.binary(max_size=200))
@example(b"")
@example(b"\x30")
@example(b"\x30\x80")
@example(b"\x30\xff" + b"\xff" * 127)
@example(b"\x30\x84\xff\xff\xff\xff")
def test_hostile_bytes_are_no_certificate(data: bytes) -> None:
    assert validity_of_certificate(data) is None


@given(st.data())
def test_hostile_certificate_gives_a_date_or_none(data: st.DataObject) -> None:
    made = bytearray(a_good_one())
    for place in data.draw(st.lists(st.integers(0, min(len(made) - 1, 200)), max_size=4)):
        made[place] = data.draw(st.integers(0, 255))
    found = validity_of_certificate(bytes(made[: data.draw(st.integers(0, len(made)))]))
    assert found is None or -62_135_596_800 <= found.ends_at <= 253_402_300_799


@pytest.mark.parametrize(
    "text", [b"350607080910+", b"3506070809Z", b"351307080910Z", b"3506070809 1Z", "٣٥٠٦٠٧٠٨٠٩١٠Z".encode()]
)
def test_time_of_another_form_is_none(text: bytes) -> None:
    assert a_good_one().count(b"\x17\x0d350607080910Z") == 1
    made = a_good_one().replace(b"\x17\x0d350607080910Z", b"\x17\x0d" + text.ljust(13, b"Z")[:13])
    assert validity_of_certificate(made) is None


def a_token(claims: object) -> str:
    body = claims if isinstance(claims, bytes) else json.dumps(claims).encode()
    return f"e30.{base64.urlsafe_b64encode(body).decode().rstrip('=')}.c2ln"


@pytest.mark.parametrize(
    ("claims", "validity"),
    [
        ({"exp": 1893456000, "iat": 1800000000, "nbf": 5}, Validity(1893456000.0, 1800000000.0)),
        ({"exp": 1893456000, "nbf": 1800000000}, Validity(1893456000.0, 1800000000.0)),
        ({"exp": 1893456000.75}, Validity(1893456000.0)),
        ({"exp": 1893456000, "iat": "yesterday"}, Validity(1893456000.0)),
        ({"exp": 1, "sub": "ä\u2028"}, Validity(1.0)),
    ],
)
def test_dates_of_a_token(claims: object, validity: Validity) -> None:
    assert validity_of_token(a_token(claims)) == validity


@pytest.mark.parametrize(
    "token",
    [
        "",
        "opaque",
        "..",
        "a.b.c",
        "k8s-aws-v1.aHR0cHM6Ly9zdHMuYW1hem9uYXdzLmNvbS8",
        "e30.ä.c2ln",
        a_token({"sub": "kubesync"}),
        a_token({"exp": "1893456000"}),
        a_token({"exp": True}),
        a_token({"exp": None}),
        a_token({"exp": [1893456000]}),
        a_token({"exp": -1}),
        a_token({"exp": 0}),
        a_token({"exp": 10**400}),
        a_token(b'{"exp": 1e400}'),
        a_token(b'{"exp": NaN}'),
        a_token(b'{"exp": ' + b"9" * 5000 + b"}"),
        a_token(b'{"exp": ' + b"[" * 100_000),
        a_token([1893456000]),
        a_token(b"\xff\xfe"),
        a_token({"exp": 1893456000}) + ".more",
    ],
)
def test_token_without_an_end_is_quietly_none(token: str) -> None:
    assert validity_of_token(token) is None


@given(st.text(max_size=100) | st.binary(max_size=100).map(a_token))
def test_hostile_token_never_raises(token: str) -> None:
    found = validity_of_token(token)
    assert found is None or 0 < found.ends_at <= 253_402_300_799
