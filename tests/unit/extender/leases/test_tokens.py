"""How often the API server is asked about tokens, and for how long its answers hold."""

import asyncio
from collections.abc import Mapping
from typing import Any

import pytest

from synergy_extender.leases import tokens
from synergy_extender.leases.tokens import CACHE_SECONDS, REFUSAL_SECONDS, Identity, Reviewer
from synergy_kube import KubeClient
from synergy_kube.resources import TOKEN_REVIEWS, Resource

AUDIENCE = "desk"
SOMEBODY = Identity({"username": "ann"}, "ann", "", "", "")


class Judge(KubeClient):
    """Reviews as the API server does: `good` tokens are somebody's, `rights` is what they may. Counts the questions."""

    def __init__(self) -> None:
        self.good: set[str] = set()
        self.rights = False
        self.asked = 0
        self.now = 1000.0

    async def create(
        self, resource: Resource, body: Mapping[str, Any], namespace: str | None = None, **_: Any
    ) -> dict[str, Any]:
        self.asked += 1
        await asyncio.sleep(0)
        if resource is not TOKEN_REVIEWS:
            return {"status": {"allowed": self.rights}}
        spec = body["spec"]
        if spec["token"] not in self.good:
            return {"status": {"error": "invalid bearer token"}}
        return {
            "status": {"authenticated": True, "user": {"username": spec["token"]}, "audiences": spec.get("audiences")}
        }


@pytest.fixture
def judge() -> Judge:
    return Judge()


@pytest.fixture
def reviewer(judge: Judge) -> Reviewer:
    return Reviewer(judge, lambda: judge.now)


async def test_a_refused_token_is_asked_about_once_in_a_while_only(judge: Judge, reviewer: Reviewer) -> None:
    for _ in range(100):
        assert await reviewer.identify("bad", AUDIENCE) is None
    assert judge.asked == 1
    judge.now += REFUSAL_SECONDS
    assert await reviewer.identify("bad", AUDIENCE) is None
    assert judge.asked == 2


async def test_many_at_once_with_one_token_cost_no_more_than_may_ask_at_once(judge: Judge, reviewer: Reviewer) -> None:
    assert await asyncio.gather(*(reviewer.identify("bad", AUDIENCE) for _ in range(1000))) == [None] * 1000
    assert judge.asked <= 16


async def test_a_token_that_becomes_valid_is_taken_once_the_refusal_is_old(judge: Judge, reviewer: Reviewer) -> None:
    assert await reviewer.identify("late", AUDIENCE) is None
    judge.good.add("late")
    judge.now += REFUSAL_SECONDS
    assert (identity := await reviewer.identify("late", AUDIENCE)) is not None
    assert identity.username == "late"


async def test_a_refusal_for_one_audience_is_none_for_another(judge: Judge, reviewer: Reviewer) -> None:
    assert await reviewer.identify("a", AUDIENCE) is None
    judge.good.add("a")
    assert await reviewer.identify("a", None) is not None


async def test_a_token_that_is_valid_no_more_is_refused_a_minute_later(judge: Judge, reviewer: Reviewer) -> None:
    judge.good.add("a")
    assert await reviewer.identify("a", AUDIENCE) is not None
    judge.good.clear()
    assert await reviewer.identify("a", AUDIENCE) is not None
    assert judge.asked == 1
    judge.now += CACHE_SECONDS
    assert await reviewer.identify("a", AUDIENCE) is None


async def test_made_up_tokens_neither_fill_the_memory_nor_displace_who_was_let_in(
    judge: Judge, reviewer: Reviewer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tokens, "CACHE_MOST", 10)
    judge.good.add("ann")
    await reviewer.identify("ann", AUDIENCE)
    for number in range(50):
        await reviewer.identify(f"made up {number}", AUDIENCE)
    asked = judge.asked
    assert await reviewer.identify("ann", AUDIENCE) is not None
    for number in range(40, 50):  # the newest ten are still known
        assert await reviewer.identify(f"made up {number}", AUDIENCE) is None
    assert judge.asked == asked
    assert await reviewer.identify("made up 39", AUDIENCE) is None
    assert judge.asked == asked + 1, "older ones are forgotten"


async def test_tokens_of_pods_that_are_gone_are_forgotten_and_those_in_use_are_not(
    judge: Judge, reviewer: Reviewer
) -> None:
    judge.good |= {"gone", "stays", "new"}
    for name in ("gone", "stays"):
        await reviewer.identify(name, AUDIENCE)
    judge.now += tokens.FORGOTTEN_SECONDS
    await reviewer.identify("stays", AUDIENCE)
    judge.now += CACHE_SECONDS
    await reviewer.identify("new", AUDIENCE)
    strangers: list[str] = []
    for name in ("gone", "stays"):

        def admit(name: str = name) -> tokens.Turn:
            strangers.append(name)
            return tokens.Turn()

        await reviewer.identify(name, AUDIENCE, admit=admit)
    assert strangers == ["gone"]


async def test_who_may_not_read_jobs_is_asked_about_once_in_a_while_only(judge: Judge, reviewer: Reviewer) -> None:
    assert [await reviewer.may_read_jobs(SOMEBODY) for _ in range(10)] == [False] * 10
    assert judge.asked == 1
    judge.rights = True
    judge.now += REFUSAL_SECONDS
    assert [await reviewer.may_read_jobs(SOMEBODY) for _ in range(10)] == [True] * 10
    assert judge.asked == 2
