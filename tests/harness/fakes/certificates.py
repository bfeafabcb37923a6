"""Certificates for TLS tests: authorities, good leaves and each kind of bad one. Keys are P-256: made within a millisecond."""

import datetime as dt
import ipaddress
import ssl
from dataclasses import dataclass
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

_NOW = dt.datetime.now(dt.UTC)


@dataclass(frozen=True, slots=True)
class Authority:
    key: ec.EllipticCurvePrivateKey
    certificate: x509.Certificate

    @property
    def pem(self) -> str:
        return self.certificate.public_bytes(serialization.Encoding.PEM).decode()


@dataclass(frozen=True, slots=True)
class Leaf:
    """Paths of a certificate and its key."""

    cert_file: str
    key_file: str

    @property
    def pem(self) -> str:
        """Certificate and key in one text."""
        return Path(self.cert_file).read_text() + Path(self.key_file).read_text()

    def server_context(self, client_ca: Authority | None = None) -> ssl.SSLContext:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(self.cert_file, self.key_file)
        if client_ca is not None:
            context.verify_mode = ssl.CERT_REQUIRED
            context.load_verify_locations(cadata=client_ca.pem)
        return context


def make_authority(
    name: str = "kubernetes", *, begins: dt.datetime | None = None, ends: dt.datetime | None = None
) -> Authority:
    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
    certificate = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(subject)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(begins or _NOW - dt.timedelta(days=2))
        .not_valid_after(ends or _NOW + dt.timedelta(days=2))
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .add_extension(x509.KeyUsage(False, False, False, False, False, True, True, False, False), critical=True)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
        .sign(key, hashes.SHA256())
    )
    return Authority(key, certificate)


def make_leaf(
    directory: Path,
    authority: Authority,
    *,
    names: tuple[str, ...] = ("127.0.0.1", "localhost"),
    expired: bool = False,
    authority_key_identifier: bool = True,
    begins: dt.datetime | None = None,
    ends: dt.datetime | None = None,
) -> Leaf:
    """``authority_key_identifier=False`` makes a leaf as EKS clusters have it."""
    key = ec.generate_private_key(ec.SECP256R1())
    builder = (
        x509.CertificateBuilder()
        .subject_name(x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "kube-apiserver")]))
        .issuer_name(authority.certificate.subject)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(begins or _NOW - dt.timedelta(days=2))
        .not_valid_after(ends or _NOW + dt.timedelta(days=-1 if expired else 1))
        .add_extension(x509.SubjectAlternativeName([_general_name(name) for name in names]), critical=False)
    )
    if authority_key_identifier:
        issuer = x509.AuthorityKeyIdentifier.from_issuer_public_key(authority.key.public_key())
        builder = builder.add_extension(issuer, critical=False)
    certificate = builder.sign(authority.key, hashes.SHA256())
    serial = f"{certificate.serial_number:x}"
    cert_file, key_file = directory / f"{serial}.crt", directory / f"{serial}.key"
    cert_file.write_bytes(certificate.public_bytes(serialization.Encoding.PEM))
    key_file.write_bytes(
        key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    )
    return Leaf(str(cert_file), str(key_file))


def _general_name(name: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(name))
    except ValueError:
        return x509.DNSName(name)
