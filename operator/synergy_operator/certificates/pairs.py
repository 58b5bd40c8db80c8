"""Certificates and their keys: create, read and check them. PEM in and out; P-256 and SHA-256 throughout."""

import ipaddress
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from cryptography import x509
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

_BACKDATED = timedelta(minutes=5)
"""For clocks that are slightly behind."""
_SIGNS = x509.KeyUsage(
    digital_signature=False, content_commitment=False, key_encipherment=False, data_encipherment=False,
    key_agreement=False, key_cert_sign=True, crl_sign=True, encipher_only=False, decipher_only=False,
)  # fmt: skip


PrivateKey = ec.EllipticCurvePrivateKey | rsa.RSAPrivateKey


@dataclass(frozen=True)
class Pair:
    """A certificate and its private key. The key is RSA only if somebody else created it."""

    certificate: x509.Certificate
    key: PrivateKey

    def data(self, name: str) -> dict[str, bytes]:
        """The entries `NAME.crt` and `NAME.key` of a Secret."""
        key = self.key.private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
        )
        return {f"{name}.crt": bundle([self.certificate]), f"{name}.key": key}


def new_authority(now: datetime, lifetime: timedelta) -> Pair:
    """An authority that signs end certificates only."""
    key, serial = ec.generate_private_key(ec.SECP256R1()), x509.random_serial_number()
    # a unique name: a verifier must not confuse two successive authorities
    name = _common_name(f"kube-synergy authority {serial:040x}"[:46])
    builder = _builder(key, now, lifetime).subject_name(name).serial_number(serial)
    builder = builder.add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
    return Pair(_sign(builder.add_extension(_SIGNS, critical=True), name, key), key)


def issue(authority: Pair, names: Sequence[str], now: datetime, lifetime: timedelta, *, server: bool) -> Pair:
    """A certificate for these names, the first of which is its common name. It does not outlive its authority."""
    key = ec.generate_private_key(ec.SECP256R1())
    use = ExtendedKeyUsageOID.SERVER_AUTH if server else ExtendedKeyUsageOID.CLIENT_AUTH
    builder = _builder(key, now, min(lifetime, authority.certificate.not_valid_after_utc - now))
    builder = builder.subject_name(_common_name(names[0][:64])).serial_number(x509.random_serial_number())
    builder = builder.add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
    builder = builder.add_extension(x509.ExtendedKeyUsage([use]), critical=False)
    builder = builder.add_extension(x509.SubjectAlternativeName([_alternative(name) for name in names]), critical=False)
    return Pair(_sign(builder, authority.certificate.subject, authority.key), key)


def read_pair(data: Mapping[str, bytes], name: str) -> Pair | None:
    """The entries `NAME.crt` and `NAME.key`. None if one is missing or invalid, or if they do not belong together."""
    certificates = read_certificates(data.get(f"{name}.crt", b""))
    try:
        key = serialization.load_pem_private_key(data.get(f"{name}.key", b""), None)
    except (ValueError, TypeError):
        return None
    if not certificates or not isinstance(key, PrivateKey):
        return None
    return Pair(certificates[0], key) if certificates[0].public_key() == key.public_key() else None


def read_certificates(pem: bytes) -> list[x509.Certificate]:
    """All certificates of a PEM text; none if it cannot be read."""
    try:
        return x509.load_pem_x509_certificates(pem)
    except ValueError:
        return []


def bundle(certificates: Iterable[x509.Certificate]) -> bytes:
    """One PEM text of all of these certificates."""
    return b"".join(certificate.public_bytes(serialization.Encoding.PEM) for certificate in certificates)


def names_of(certificate: x509.Certificate) -> set[str]:
    """The certificate's DNS names and IP addresses."""
    try:
        names = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    except x509.ExtensionNotFound:
        return set()
    return {str(name.value) for name in names if isinstance(name, x509.DNSName | x509.IPAddress)}


def issued_by(certificate: x509.Certificate, authority: x509.Certificate) -> bool:
    """The authority's key signed the certificate."""
    try:
        certificate.verify_directly_issued_by(authority)
    except (ValueError, TypeError, InvalidSignature):
        return False
    return True


def _builder(key: ec.EllipticCurvePrivateKey, now: datetime, lifetime: timedelta) -> x509.CertificateBuilder:
    return (
        x509.CertificateBuilder()
        .public_key(key.public_key())
        .not_valid_before(now - _BACKDATED)
        .not_valid_after(now + lifetime)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
    )


def _sign(builder: x509.CertificateBuilder, issuer: x509.Name, key: PrivateKey) -> x509.Certificate:
    identifier = x509.AuthorityKeyIdentifier.from_issuer_public_key(key.public_key())
    return builder.issuer_name(issuer).add_extension(identifier, critical=False).sign(key, hashes.SHA256())


def _common_name(text: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, text)])


def _alternative(name: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(name))
    except ValueError:
        return x509.DNSName(name)
