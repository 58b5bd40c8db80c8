"""Which of the ThroughputProfiles that the operator published are deleted."""

from typing import Any

import pytest

from synergy_api.timestamps import format_time
from synergy_operator.profile import known_profiles
from synergy_operator.profile.known_profiles import check_profile, published_profile, surplus
from synergy_operator.views.known_profile import PublishedProfile

MATRIX = {"gpuType": "V100", "cpuMillis": [1000], "memoryBytes": [1], "stepsPerSecond": [[1.0]]}
OURS = {"kube-synergy.dev/published": "true"}


def _read(fingerprint: str, measured_at: float = 0.0, **metadata: Any) -> PublishedProfile | None:
    created = {"name": fingerprint, "uid": f"uid-{fingerprint}", "creationTimestamp": format_time(500.0)}
    spec = {"fingerprint": "f" * 8, "image": "i", "gpus": 1, "matrices": [MATRIX]}
    item = {
        "metadata": {**created, "labels": OURS, **metadata},
        "spec": {**spec, "fingerprint": fingerprint, "measuredAt": format_time(measured_at)},
    }
    return published_profile(item, check_profile(item)[0])


def _published(namespace: str = "team", **measured_at: float) -> list[PublishedProfile]:
    labels = {**OURS, "kube-synergy.dev/measured-for": namespace}
    found = [_read(fingerprint, at, labels=labels) for fingerprint, at in measured_at.items()]
    return [one for one in found if one is not None]


@pytest.fixture(autouse=True)
def three_stay(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(known_profiles, "MOST_PUBLISHED", 3)


def test_those_that_were_measured_longest_ago_are_deleted() -> None:
    one_too_many = _published(aaaaaaaa=40, bbbbbbbb=30, cccccccc=10, dddddddd=20)
    assert [one.name for one in surplus(one_too_many, lambda _: ())] == ["cccccccc"]
    two_too_many = [*one_too_many, *_published(eeeeeeee=15)]
    assert [one.name for one in surplus(two_too_many, lambda _: ())] == ["cccccccc", "eeeeeeee"]


def test_none_is_deleted_while_there_is_room() -> None:
    assert surplus(_published(aaaaaaaa=40, bbbbbbbb=30, cccccccc=10), lambda _: ()) == []


def test_the_namespace_with_most_profiles_loses_its_oldest() -> None:
    nightly = _published("nightly", aaaaaaaa=1)
    older = _published("", bbbbbbbb=5, cccccccc=6)
    sweep = _published("sweep", dddddddd=10, eeeeeeee=11, ffffffff=12, gggggggg=13)
    gone = [one.name for one in surplus([*nightly, *older, *sweep], lambda _: ())]
    assert gone == ["dddddddd", "eeeeeeee", "bbbbbbbb", "ffffffff"]


def test_a_namespace_whose_profiles_are_all_used_gives_none() -> None:
    published = [*_published("sweep", aaaaaaaa=1, bbbbbbbb=2, cccccccc=3), *_published("nightly", dddddddd=4)]
    gone = surplus(published, lambda fingerprint: [] if fingerprint == "dddddddd" else [("sweep", "job")])
    assert [one.name for one in gone] == ["dddddddd"]


def test_what_a_job_that_is_not_finished_may_use_stays() -> None:
    """Also those of its other images, whose names have the same fingerprint."""
    published = [*_published(aaaaaaaa=1, bbbbbbbb=3, cccccccc=4, dddddddd=5)]
    published += [PublishedProfile("aaaaaaaa-0123456789ab", "uid", "team", format_time(2))]

    def unfinished(fingerprint: str) -> list[tuple[str, str]]:
        return [("team", "job")] if fingerprint == "aaaaaaaa" else []

    assert [one.name for one in surplus(published, unfinished)] == ["bbbbbbbb", "cccccccc"]
    assert surplus(published, lambda _: [("team", "job")]) == []


@pytest.mark.parametrize(
    "metadata",
    [
        {"labels": None},
        {"labels": {"team": "vision"}},
        {"labels": {"kube-synergy.dev/published": "false"}},
        {"deletionTimestamp": format_time(600.0)},
    ],
)
def test_what_somebody_wrote_by_hand_or_deletes_already_is_not_for_the_operator_to_delete(
    metadata: dict[str, Any],
) -> None:
    assert _read("aaaaaaaa") == PublishedProfile("aaaaaaaa", "uid-aaaaaaaa", "", format_time(0.0))
    assert _read("aaaaaaaa", **metadata) is None


def test_a_profile_that_no_job_may_use_is_as_old_as_its_creation() -> None:
    spoilt = _read("aaaaaaaa", 1000.0, name="another")
    assert spoilt is not None
    assert spoilt.measured_at == format_time(500.0)
