"""Years of certificates in a moment: what holds on every day of them."""

from datetime import UTC, datetime, timedelta

import pytest
from cryptography import x509
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID
from cryptography.x509.verification import PolicyBuilder, Store, VerificationError
from hypothesis import given, settings
from hypothesis import strategies as st

from synergy_operator.certificates.job import read_settings
from synergy_operator.certificates.pairs import issued_by, names_of, new_authority, read_certificates, read_pair
from synergy_operator.certificates.renewal import Data, Lifetimes, Secrets, Wanted, renew

NOW = datetime(2026, 1, 1, tzinfo=UTC)
DAY = timedelta(days=1)
HOST = "kube-synergy-extender.somewhere.svc"
WANTED = Wanted((HOST, "kube-synergy-extender"), "kube-synergy-scheduler")
LIFETIMES = Lifetimes(authority=120 * DAY, certificate=9 * DAY, overlap=10 * DAY)
FIRST = renew(Secrets(), NOW, LIFETIMES, WANTED)


def certificate(data: Data) -> x509.Certificate:
    return read_certificates(data["tls.crt"])[0]


def accepted(data: Data, trusted: bytes, at: datetime) -> bool:
    """Whether one who trusts these authorities accepts the extender's certificate, as TLS libraries verify it."""
    builder = PolicyBuilder().store(Store(read_certificates(trusted))).time(at)
    try:
        builder.build_server_verifier(x509.DNSName(HOST)).verify(certificate(data), [])
    except VerificationError:
        return False
    return True


def client_accepted(data: Data, trusted: bytes, at: datetime) -> bool:
    """Whether one who trusts these authorities accepts the scheduler's certificate."""
    builder = PolicyBuilder().store(Store(read_certificates(trusted))).time(at)
    try:
        builder.build_client_verifier().verify(certificate(data), [])
    except VerificationError:
        return False
    return True


def test_out_of_nothing_come_an_authority_and_two_certificates_that_verify() -> None:
    assert accepted(FIRST.extender, FIRST.scheduler["ca.crt"], NOW)
    assert client_accepted(FIRST.scheduler, FIRST.extender["ca.crt"], NOW)
    assert names_of(certificate(FIRST.extender)) == set(WANTED.extender)
    (name,) = certificate(FIRST.scheduler).subject.get_attributes_for_oid(NameOID.COMMON_NAME)
    assert name.value == "kube-synergy-scheduler"
    uses = certificate(FIRST.scheduler).extensions.get_extension_for_class(x509.ExtendedKeyUsage).value
    assert list(uses) == [ExtendedKeyUsageOID.CLIENT_AUTH]
    assert set(FIRST.extender) == set(FIRST.scheduler) == {"tls.crt", "tls.key", "ca.crt"}


def test_a_certificate_of_the_scheduler_is_none_of_a_server() -> None:
    assert not accepted({**FIRST.scheduler}, FIRST.scheduler["ca.crt"], NOW)


def test_a_second_look_changes_nothing() -> None:
    assert renew(FIRST, NOW + DAY, LIFETIMES, WANTED) == FIRST


@settings(max_examples=12)
@given(pauses=st.lists(st.integers(1, 3), min_size=110, max_size=130))
def test_through_years_everybody_who_is_not_too_old_accepts_the_certificates(pauses: list[int]) -> None:
    """Looks at days of a certificate's last third at the latest. A worker trusts what was trusted when it was made, up
    to `overlap` ago; the scheduler and the extender pick up their Secrets one look late."""
    held, now, moments, seen = FIRST, NOW, [(NOW, FIRST)], set()
    for pause in pauses:
        now += pause * DAY
        before, held = held, renew(held, now, LIFETIMES, WANTED)
        assert renew(held, now, LIFETIMES, WANTED) == held
        for one, other in ((held, before), (before, held)):
            assert accepted(one.extender, other.scheduler["ca.crt"], now)
            assert client_accepted(one.scheduler, other.extender["ca.crt"], now)
        moments = [(at, old) for at, old in moments if now - at <= LIFETIMES.overlap] + [(now, held)]
        for _, old in moments:
            assert accepted(held.extender, old.extender["ca.crt"], now)
        assert len(read_certificates(held.extender["ca.crt"])) <= 2
        seen.add(held.authority["tls.crt"])
    years = (now - NOW) / LIFETIMES.authority
    assert len(seen) >= int(years)


def test_an_authority_is_trusted_before_it_signs_and_forgotten_after_it_no_longer_does() -> None:
    held, now = FIRST, NOW
    story: list[tuple[int, bool, int]] = []
    while len(story) < 4:
        now += DAY
        held = renew(held, now, LIFETIMES, WANTED)
        signing, count = (
            held.authority["tls.crt"] != FIRST.authority["tls.crt"],
            len(read_certificates(held.authority["ca.crt"])),
        )
        if not story or story[-1][1:] != (signing, count):
            story.append(((now - NOW).days, signing, count))
    assert story == [(1, False, 1), (81, False, 2), (91, True, 2), (101, True, 1)]


@pytest.mark.parametrize("lost", ["tls.key", "tls.crt"])
@pytest.mark.parametrize("secret", ["extender", "scheduler"])
def test_a_certificate_that_is_broken_is_made_anew_by_the_same_authority(secret: str, lost: str) -> None:
    broken = {**getattr(FIRST, secret), lost: b"broken"}
    held = renew(Secrets(**{**vars(FIRST), secret: broken}), NOW + DAY, LIFETIMES, WANTED)
    assert held.authority == FIRST.authority
    assert issued_by(certificate(getattr(held, secret)), certificate(FIRST.authority))
    other = "scheduler" if secret == "extender" else "extender"
    assert getattr(held, other) == getattr(FIRST, other)


def test_a_new_name_of_the_extender_brings_a_new_certificate() -> None:
    wanted = Wanted((*WANTED.extender, "10.0.0.1"), WANTED.scheduler)
    held = renew(FIRST, NOW, LIFETIMES, wanted)
    assert names_of(certificate(held.extender)) == set(wanted.extender)
    assert held.scheduler == FIRST.scheduler


def test_an_authority_whose_key_is_lost_stays_trusted_until_another_signs() -> None:
    """As on the upgrade from a release that threw the key away."""
    orphaned = Secrets(extender=FIRST.extender, scheduler=FIRST.scheduler)
    held = renew(orphaned, NOW, LIFETIMES, WANTED)
    assert held.extender["tls.crt"] == FIRST.extender["tls.crt"]
    assert len(read_certificates(held.extender["ca.crt"])) == 2
    for day in range(1, 10):
        held = renew(held, NOW + day * DAY, LIFETIMES, WANTED)
        assert accepted(held.extender, held.scheduler["ca.crt"], NOW + day * DAY)
    later = renew(held, NOW + 11 * DAY, LIFETIMES, WANTED)
    assert issued_by(certificate(later.extender), certificate(later.authority))
    assert len(read_certificates(renew(later, NOW + 21 * DAY, LIFETIMES, WANTED).extender["ca.crt"])) == 1


def test_an_authority_that_has_expired_is_replaced() -> None:
    held = renew(FIRST, NOW + 121 * DAY, LIFETIMES, WANTED)
    assert accepted(held.extender, held.scheduler["ca.crt"], NOW + 121 * DAY)


def test_a_certificate_does_not_outlive_its_authority() -> None:
    held = renew(Secrets(), NOW, Lifetimes(authority=6 * DAY, certificate=6 * DAY, overlap=DAY), WANTED)
    until = certificate(held.authority).not_valid_after_utc
    assert certificate(held.extender).not_valid_after_utc <= until


def test_a_strangers_certificate_is_not_kept() -> None:
    stranger = renew(Secrets(), NOW, LIFETIMES, WANTED)
    held = renew(Secrets(FIRST.authority, stranger.extender, FIRST.scheduler), NOW, LIFETIMES, WANTED)
    assert issued_by(certificate(held.extender), certificate(FIRST.authority))
    assert stranger.authority["tls.crt"] not in held.extender["ca.crt"]


def test_a_key_of_another_certificate_is_no_pair() -> None:
    one, other = new_authority(NOW, DAY).data("tls"), new_authority(NOW, DAY).data("tls")
    assert read_pair(one, "tls") is not None
    assert read_pair({**one, "tls.key": other["tls.key"]}, "tls") is None


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ({"authority": DAY}, "at most that of its authority"),
        ({"certificate": timedelta(0)}, "must be positive"),
        ({"overlap": 609 * DAY}, "at most a sixth"),
        ({"overlap": timedelta(0)}, "must be positive"),
    ],
)
def test_lifetimes_that_cannot_work_are_refused(wrong: dict[str, timedelta], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        Lifetimes(**wrong)


ENVIRON = {"SYNERGY_NAMESPACE": "n", "SYNERGY_EXTENDER_NAMES": "a,b"}


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ({"SYNERGY_NAMESPACE": ""}, "SYNERGY_NAMESPACE"),
        ({"SYNERGY_EXTENDER_NAMES": " , "}, "SYNERGY_EXTENDER_NAMES"),
        ({"SYNERGY_OVERLAP_DAYS": "soon"}, "SYNERGY_OVERLAP_DAYS is 'soon'"),
        ({"SYNERGY_CERTIFICATE_DAYS": "0"}, "SYNERGY_CERTIFICATE_DAYS is '0'"),
    ],
)
def test_a_bad_setting_is_named(wrong: dict[str, str], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        read_settings({**ENVIRON, **wrong})
