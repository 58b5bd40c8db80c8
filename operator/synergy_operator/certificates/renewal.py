"""The wanted content of the three Secrets, derived from their current content and the time. Pure.

An authority is trusted everywhere for `overlap` before it signs, and for the same time after another has replaced it.
So no component meets a certificate of an authority that it does not trust. A worker keeps the authorities of the time
of its creation, kube-scheduler those of its start.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from cryptography import x509

from synergy_operator.certificates.pairs import (
    Pair,
    bundle,
    issue,
    issued_by,
    names_of,
    new_authority,
    read_certificates,
    read_pair,
)

Data = Mapping[str, bytes]


@dataclass(frozen=True)
class Lifetimes:
    """How long authorities and certificates are valid, and how long a new authority is trusted before it signs."""

    authority: timedelta = timedelta(days=3650)
    certificate: timedelta = timedelta(days=90)
    overlap: timedelta = timedelta(days=30)

    def __post_init__(self) -> None:
        if not timedelta(0) < self.certificate <= self.authority:
            raise ValueError("the lifetime of a certificate must be positive and at most that of its authority")
        # in the last third of an authority's life the next one is created, waits and takes over
        if not timedelta(0) < 6 * self.overlap <= self.authority:
            raise ValueError("the overlap must be positive and at most a sixth of an authority's lifetime")


@dataclass(frozen=True)
class Wanted:
    """The names to certify: the extender's DNS names, and the scheduler's name."""

    extender: Sequence[str]
    scheduler: str


@dataclass(frozen=True)
class Secrets:
    """The data of the three Secrets; empty for one that does not exist."""

    authority: Data = field(default_factory=dict)
    extender: Data = field(default_factory=dict)
    scheduler: Data = field(default_factory=dict)


@dataclass(frozen=True)
class _Authorities:
    signing: Pair
    upcoming: Pair | None
    retired: tuple[x509.Certificate, ...]

    @property
    def trusted(self) -> list[x509.Certificate]:
        """All authorities, the newest first, independent of their roles. A change of roles alone does not change the
        bundle."""
        upcoming = [self.upcoming.certificate] if self.upcoming else []
        everyone = [self.signing.certificate, *upcoming, *self.retired]
        return sorted(everyone, key=lambda one: (one.not_valid_before_utc, one.serial_number), reverse=True)


def renew(held: Secrets, now: datetime, lifetimes: Lifetimes, wanted: Wanted) -> Secrets:
    """The wanted content of the Secrets now. Entries that need no change stay as they are."""
    authorities = _authorities(held, now, lifetimes)
    trusted = bundle(authorities.trusted)
    own = {**authorities.signing.data("tls"), "ca.crt": trusted, "retired.crt": bundle(authorities.retired)}
    if authorities.upcoming:
        own |= authorities.upcoming.data("next")

    def leaf(data: Data, names: Sequence[str], *, server: bool) -> Data:
        pair = read_pair(data, "tls")
        if pair is None or not _good(pair.certificate, names, authorities, now, lifetimes):
            pair = issue(authorities.signing, names, now, lifetimes.certificate, server=server)
            return {**pair.data("tls"), "ca.crt": trusted}
        return {"tls.crt": data["tls.crt"], "tls.key": data["tls.key"], "ca.crt": trusted}

    return Secrets(
        own, leaf(held.extender, wanted.extender, server=True), leaf(held.scheduler, [wanted.scheduler], server=False)
    )


def _authorities(held: Secrets, now: datetime, lifetimes: Lifetimes) -> _Authorities:
    signing = read_pair(held.authority, "tls")
    upcoming = read_pair(held.authority, "next")
    retired = read_certificates(held.authority.get("retired.crt", b""))
    if signing is None or _left(signing.certificate, now) <= timedelta(0):
        # the authority whose key is lost may have signed certificates that are still in use
        retired = [*read_certificates(held.extender.get("ca.crt", b"")), *retired]
        signing, upcoming = new_authority(now, lifetimes.authority), None
    elif upcoming is not None and _age(upcoming, now) >= lifetimes.overlap:
        retired = [signing.certificate, *retired]
        signing, upcoming = upcoming, None
    else:
        if upcoming is None and _left(signing.certificate, now) < lifetimes.authority / 3:
            upcoming = new_authority(now, lifetimes.authority)
        if _age(signing, now) >= 2 * lifetimes.overlap:
            retired = []
    valid = (old for old in retired if old != signing.certificate and _left(old, now) > timedelta(0))
    return _Authorities(signing, upcoming, tuple(dict.fromkeys(valid)))


def _good(
    certificate: x509.Certificate, names: Sequence[str], authorities: _Authorities, now: datetime, lifetimes: Lifetimes
) -> bool:
    """The certificate may stay in use."""
    if _left(certificate, now) < lifetimes.certificate / 3 or not set(names) <= names_of(certificate):
        return False
    if issued_by(certificate, authorities.signing.certificate):
        return True
    known = any(issued_by(certificate, authority) for authority in authorities.retired)
    return known and _age(authorities.signing, now) < lifetimes.overlap


def _age(pair: Pair, now: datetime) -> timedelta:
    return now - pair.certificate.not_valid_before_utc


def _left(certificate: x509.Certificate, now: datetime) -> timedelta:
    return certificate.not_valid_after_utc - now
