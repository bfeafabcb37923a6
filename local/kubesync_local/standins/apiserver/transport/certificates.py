"""Certificates for a TLS server on this machine: a CA, and leaf certificates like those of EKS and others."""

import ipaddress
import ssl
import tempfile
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID


@dataclass(frozen=True, slots=True)
class ServerCertificate:
    """A chain to serve with (leaf first) and its key, both PEM; ``ca_pem``: the CA for clients."""

    chain_pem: bytes
    key_pem: bytes
    ca_pem: bytes

    def server_context(self) -> ssl.SSLContext:
        """A context for the server's side. Raises ssl.SSLError if chain and key do not match."""
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        # The ssl module loads certificates from files only; the directory is private and deleted right after.
        with tempfile.TemporaryDirectory() as directory:
            chain, key = Path(directory, "chain.pem"), Path(directory, "key.pem")
            chain.write_bytes(self.chain_pem)
            key.write_bytes(self.key_pem)
            context.load_cert_chain(chain, key)
        return context

    def write_ca(self, path: Path) -> None:
        """Write the CA's PEM for clients."""
        path.write_bytes(self.ca_pem)


class CertificateAuthority:
    """A CA made for one run; its key is never written anywhere."""

    def __init__(self, common_name: str = "kubernetes", now: datetime | None = None) -> None:
        self._now = now or datetime.now(UTC)
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, common_name)])
        self._certificate = (
            self._builder(
                self._name, self._key.public_key(), self._now - timedelta(hours=1), self._now + timedelta(days=365)
            )
            .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
            .add_extension(_key_usage(certificate_authority=True), critical=True)
            .add_extension(x509.SubjectKeyIdentifier.from_public_key(self._key.public_key()), critical=False)
            .sign(self._key, hashes.SHA256())
        )

    @property
    def pem(self) -> bytes:
        """The CA's certificate."""
        return self._certificate.public_bytes(serialization.Encoding.PEM)

    def issue(
        self,
        names: tuple[str, ...] = ("localhost", "127.0.0.1", "::1"),
        *,
        expired: bool = False,
        authority_key_identifier: bool = True,
    ) -> ServerCertificate:
        """A server certificate for host names and addresses.

        Args:
            names: the names and addresses that it is valid for.
            expired: it expired an hour ago.
            authority_key_identifier: without one it is like those of EKS clusters: valid, but refused by
                VERIFY_X509_STRICT (the default from Python 3.13 on).
        """
        key = ec.generate_private_key(ec.SECP256R1())
        until = self._now + (timedelta(hours=-1) if expired else timedelta(days=90))
        subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "kube-apiserver")])
        builder = (
            self._builder(subject, key.public_key(), self._now - timedelta(days=1), until)
            .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
            .add_extension(_key_usage(certificate_authority=False), critical=True)
            .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), critical=False)
            .add_extension(x509.SubjectAlternativeName([_general_name(name) for name in names]), critical=False)
        )
        if authority_key_identifier:
            identifier = x509.AuthorityKeyIdentifier.from_issuer_public_key(self._key.public_key())
            builder = builder.add_extension(identifier, critical=False)
        leaf = builder.sign(self._key, hashes.SHA256())
        return ServerCertificate(
            chain_pem=leaf.public_bytes(serialization.Encoding.PEM),
            key_pem=key.private_bytes(
                serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
            ),
            ca_pem=self.pem,
        )

    def _builder(
        self, subject: x509.Name, public_key: ec.EllipticCurvePublicKey, begins: datetime, ends: datetime
    ) -> x509.CertificateBuilder:
        return (
            x509.CertificateBuilder()
            .subject_name(subject)
            .issuer_name(self._name)
            .public_key(public_key)
            .serial_number(x509.random_serial_number())
            .not_valid_before(begins)
            .not_valid_after(ends)
        )


def _key_usage(*, certificate_authority: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=not certificate_authority,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        key_cert_sign=certificate_authority,
        crl_sign=certificate_authority,
        encipher_only=False,
        decipher_only=False,
    )


def _general_name(name: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(name))
    except ValueError:
        return x509.DNSName(name)
