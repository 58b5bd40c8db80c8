"""What a token says of itself, before anybody asks whether it is true."""

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from support.extender.made_up_tokens import made_up
from synergy_api.names import TOKEN_AUDIENCE
from synergy_extender.leases.claims import EXPIRED_SECONDS, LONGEST_TOKEN, ClaimError, PodClaim, claims_of

NOW = time.time()


def test_the_pod_that_a_token_names() -> None:
    assert claims_of(made_up("team", "j-1-0", "u"), TOKEN_AUDIENCE, NOW) == PodClaim("team", "j-1-0", "u")
    assert claims_of(made_up(aud=TOKEN_AUDIENCE), TOKEN_AUDIENCE, NOW).namespace == "team"


@pytest.mark.parametrize("bound", [None, {"namespace": "team"}, {"namespace": "team", "pod": None}])
def test_a_token_that_is_bound_to_no_pod_names_none(bound: object) -> None:
    assert claims_of(made_up(**{"kubernetes.io": bound}), TOKEN_AUDIENCE, NOW) == PodClaim()


def test_a_token_for_somebody_else_is_refused() -> None:
    for audience in ("vault", ["vault", "api"], []):
        with pytest.raises(ClaimError, match=f"not for the audience {TOKEN_AUDIENCE}"):
            claims_of(made_up(aud=audience), TOKEN_AUDIENCE, NOW)


def test_only_a_token_that_expired_days_ago_is_refused_here() -> None:
    """A clock that jumps ahead by a day must not send workers away: the API server decides about the rest."""
    claims_of(made_up(exp=NOW - 86400), TOKEN_AUDIENCE, NOW)
    with pytest.raises(ClaimError, match="expired long ago"):
        claims_of(made_up(exp=NOW - EXPIRED_SECONDS - 1), TOKEN_AUDIENCE, NOW)


@pytest.mark.parametrize(
    "token",
    [
        "",
        "opaque",
        "a.b",
        "a.!!!.c",
        "a.bm90IGpzb24.c",
        "a.\u00e9.c",
        "a." + "W" * 4000 + ".c",
        made_up(filler="x" * LONGEST_TOKEN),
        made_up(exp="tomorrow"),
        made_up(aud=7),
        made_up(**{"kubernetes.io": {"namespace": "team", "pod": {"name": "j"}}}),
    ],
)
def test_what_is_no_token_of_a_pod_is_refused(token: str) -> None:
    with pytest.raises(ClaimError, match="not one that a kubelet gives a pod"):
        claims_of(token, TOKEN_AUDIENCE, NOW)


@given(st.text(max_size=300), st.text(max_size=300))
def test_any_text_is_taken_or_refused(head: str, body: str) -> None:
    for token in (head, f"{head}.{body}.x", f"a.{body}.b"):
        with pytest.raises(ClaimError):
            claims_of(token, TOKEN_AUDIENCE, NOW)
