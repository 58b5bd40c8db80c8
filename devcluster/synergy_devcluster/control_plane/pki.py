"""Keys and certificates of one cluster: a CA, and one client or server certificate per component."""

import datetime
import ipaddress
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

VALID_FOR = datetime.timedelta(days=365)


@dataclass(frozen=True)
class KeyPair:
    """Paths of a certificate and its private key."""

    certificate: Path
    key: Path


class Authority:
    """A certificate authority that writes what it issues into one folder, readable by the owner only."""

    def __init__(self, folder: Path, name: str = "kube-synergy-devcluster") -> None:
        self._folder = folder
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
        builder = _builder(self._name, self._name, self._key.public_key()).add_extension(
            x509.BasicConstraints(ca=True, path_length=0), critical=True
        )
        usage = x509.KeyUsage(True, False, False, False, False, True, True, False, False)
        certificate = builder.add_extension(usage, critical=True).sign(self._key, hashes.SHA256())
        self.certificate = folder / "ca.crt"
        self.key = folder / "ca.key"
        self.certificate.write_bytes(certificate.public_bytes(serialization.Encoding.PEM))
        _write_key(self.key, self._key)

    def client(self, file: str, user: str, group: str | None = None) -> KeyPair:
        """Issue a client certificate for a Kubernetes user, and a group if given."""
        attributes = [x509.NameAttribute(NameOID.COMMON_NAME, user)]
        if group:
            attributes.insert(0, x509.NameAttribute(NameOID.ORGANIZATION_NAME, group))
        return self._issue(file, x509.Name(attributes), ExtendedKeyUsageOID.CLIENT_AUTH, ())

    def server(self, file: str, names: Iterable[str]) -> KeyPair:
        """Issue a server certificate for DNS names and IP addresses."""
        listed = tuple(names)
        subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, listed[0])])
        return self._issue(file, subject, ExtendedKeyUsageOID.SERVER_AUTH, listed)

    def _issue(self, file: str, subject: x509.Name, use: x509.ObjectIdentifier, names: tuple[str, ...]) -> KeyPair:
        key = ec.generate_private_key(ec.SECP256R1())
        builder = _builder(subject, self._name, key.public_key()).add_extension(
            x509.ExtendedKeyUsage([use]), critical=False
        )
        if names:
            builder = builder.add_extension(x509.SubjectAlternativeName([_san(name) for name in names]), critical=False)
        certificate = builder.sign(self._key, hashes.SHA256())
        pair = KeyPair(self._folder / f"{file}.crt", self._folder / f"{file}.key")
        pair.certificate.write_bytes(certificate.public_bytes(serialization.Encoding.PEM))
        _write_key(pair.key, key)
        return pair


def signing_key(folder: Path, file: str) -> KeyPair:
    """Make a key pair without a certificate, for service-account tokens (``certificate`` is the public key)."""
    key = ec.generate_private_key(ec.SECP256R1())
    pair = KeyPair(folder / f"{file}.pub", folder / f"{file}.key")
    pem = key.public_key().public_bytes(serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo)
    pair.certificate.write_bytes(pem)
    _write_key(pair.key, key)
    return pair


def _builder(subject: x509.Name, issuer: x509.Name, public: ec.EllipticCurvePublicKey) -> x509.CertificateBuilder:
    now = datetime.datetime.now(datetime.UTC)
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(public)
        .serial_number(x509.random_serial_number())
        # an hour back, for a clock that is set while the cluster runs
        .not_valid_before(now - datetime.timedelta(hours=1))
        .not_valid_after(now + VALID_FOR)
    )


def _san(name: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(name))
    except ValueError:
        return x509.DNSName(name)


def _write_key(path: Path, key: ec.EllipticCurvePrivateKey) -> None:
    path.touch(mode=0o600)
    path.write_bytes(
        key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    )
