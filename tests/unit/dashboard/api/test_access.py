"""Who is let in, how often the API server is asked about that, and whom a proxy may name."""

import asyncio
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from support.dashboard.server import AskedClient, dashboard
from support.extender.cluster import job_object
from synergy_dashboard.api.people import SECRET_HEADER
from synergy_dashboard.api.reviews import (
    CACHE_SECONDS,
    HIDDEN_SECONDS,
    REFUSAL_SECONDS,
    ClusterReviewer,
    Identity,
    identity_of,
    scope_of,
)
from synergy_dashboard.api.turns import PEER_BURST, BusyError
from synergy_dashboard.live.scope import EVERYTHING
from synergy_kube import ApiError, KubeClient
from synergy_kube.resources import ACCESS_REVIEWS, TOKEN_REVIEWS, TRAINING_JOBS, Resource

PEER = "10.0.0.1"


class Judge(KubeClient):
    """Reviews as the API server does: `good` tokens are somebody's, `rights` are (user, namespace or empty)."""

    def __init__(self) -> None:
        self.good: set[str] = set()
        self.rights: set[tuple[str, str]] = set()
        self.asked: list[dict[str, Any]] = []
        self.at_once = self.most_at_once = 0
        self.now = 1000.0

    async def create(
        self, resource: Resource, body: Mapping[str, Any], namespace: str | None = None, **_: Any
    ) -> dict[str, Any]:
        spec = body["spec"]
        self.asked.append(spec)
        self.at_once += 1
        self.most_at_once = max(self.most_at_once, self.at_once)
        await asyncio.sleep(0)
        self.at_once -= 1
        if resource is ACCESS_REVIEWS:
            attributes = spec["resourceAttributes"]
            assert (attributes["group"], attributes["resource"], attributes["verb"]) == (
                "kube-synergy.dev", "trainingjobs", "get"
            )  # fmt: skip
            return {"status": {"allowed": (spec["user"], attributes.get("namespace", "")) in self.rights}}
        assert resource is TOKEN_REVIEWS
        if spec["token"] not in self.good:
            return {"status": {"error": "invalid bearer token"}}
        user = {"username": spec["token"], "uid": "7", "groups": ["g"], "extra": {"scopes": ["a"]}}
        return {"status": {"authenticated": True, "user": user}}


@pytest.fixture
def judge() -> Judge:
    return Judge()


@pytest.fixture
def reviewer(judge: Judge) -> ClusterReviewer:
    return ClusterReviewer(judge, lambda: judge.now)


async def test_an_accepted_token_is_reviewed_once_a_minute(judge: Judge, reviewer: ClusterReviewer) -> None:
    judge.good.add("ann")
    for _ in range(100):
        assert await reviewer.identify("ann", PEER) == Identity("ann", "7", ("g",), {"scopes": ["a"]})
    assert len(judge.asked) == 1
    judge.now += CACHE_SECONDS
    judge.good.clear()
    assert await reviewer.identify("ann", PEER) is None


async def test_a_refused_token_is_reviewed_again_after_a_while_only(judge: Judge, reviewer: ClusterReviewer) -> None:
    for _ in range(100):
        assert await reviewer.identify("late", PEER) is None
    assert len(judge.asked) == 1
    judge.good.add("late")
    judge.now += REFUSAL_SECONDS
    assert await reviewer.identify("late", PEER) is not None


async def test_many_wrong_tokens_of_an_address_do_not_become_many_reviews(
    judge: Judge, reviewer: ClusterReviewer
) -> None:
    judge.good |= {"known", "other"}
    assert await reviewer.identify("known", PEER) is not None
    answers = await asyncio.gather(
        *(reviewer.identify(f"made-up-{index}", PEER) for index in range(1000)), return_exceptions=True
    )
    assert sum(isinstance(one, BusyError) for one in answers) >= 1000 - PEER_BURST
    assert len(judge.asked) <= PEER_BURST + 1
    assert judge.most_at_once <= 4
    judge.now += CACHE_SECONDS - 1
    assert await reviewer.identify("known", PEER) is not None
    assert await reviewer.identify("other", "10.0.0.2") is not None


async def test_an_accepted_token_is_renewed_while_its_address_floods(judge: Judge, reviewer: ClusterReviewer) -> None:
    judge.good.add("known")
    assert await reviewer.identify("known", PEER) is not None
    judge.now += CACHE_SECONDS
    await asyncio.gather(*(reviewer.identify(f"bad-{index}", PEER) for index in range(500)), return_exceptions=True)
    assert await reviewer.identify("known", PEER) is not None


async def test_those_who_ask_the_same_at_once_cost_one_review(judge: Judge, reviewer: ClusterReviewer) -> None:
    judge.good.add("ann")
    await asyncio.gather(*(reviewer.identify("ann", PEER) for _ in range(100)))
    assert len(judge.asked) == 1


async def test_a_token_is_not_kept_and_not_logged(
    judge: Judge, reviewer: ClusterReviewer, caplog: pytest.LogCaptureFixture
) -> None:
    judge.good.add("very-secret")
    await reviewer.identify("very-secret", PEER)
    await reviewer.identify("very-wrong", PEER)
    kept = repr(vars(reviewer._identities))
    assert "very-wrong" not in kept
    assert "very" not in caplog.text


async def test_rights_are_asked_for_all_first_then_by_namespace_and_remembered(
    judge: Judge, reviewer: ClusterReviewer
) -> None:
    judge.rights = {("root", ""), ("ann", "a"), ("ann", "c")}
    assert await scope_of(reviewer, Identity("root"), {"a", "b"}) == EVERYTHING
    assert len(judge.asked) == 1
    judge.asked.clear()
    for _ in range(5):
        scope = await scope_of(reviewer, Identity("ann", "7", ("g",), {"scopes": ["a"]}), {"a", "b", "c"})
        assert scope.namespaces == {"a", "c"}
    assert [one["resourceAttributes"].get("namespace", "") for one in judge.asked] == ["", "a", "b", "c"]
    first = judge.asked[0]
    assert (first["uid"], first["groups"], first["extra"]) == ("7", ["g"], {"scopes": ["a"]})
    judge.rights.clear()
    judge.now += CACHE_SECONDS
    assert (await scope_of(reviewer, Identity("ann"), {"a", "b", "c"})).namespaces == frozenset()


async def test_hidden_namespaces_are_reviewed_again_more_seldom_than_those_that_are_seen(
    judge: Judge, reviewer: ClusterReviewer
) -> None:
    ann, namespaces = Identity("ann"), {f"n{index}" for index in range(200)}
    judge.rights = {("ann", "n1")}
    assert (await scope_of(reviewer, ann, namespaces)).namespaces == {"n1"}
    judge.asked.clear()
    judge.rights = {("ann", "n1"), ("ann", "n2")}
    judge.now += CACHE_SECONDS
    assert (await scope_of(reviewer, ann, namespaces)).namespaces == {"n1"}
    assert len(judge.asked) == 2, "for all namespaces, and for the one that is seen"
    assert await reviewer.may_see(ann, "n2"), "who asks for it is answered anew"
    assert (await scope_of(reviewer, ann, namespaces)).namespaces == {"n1", "n2"}
    judge.rights = {("ann", "n3")}
    judge.now += HIDDEN_SECONDS
    assert (await scope_of(reviewer, ann, namespaces)).namespaces == {"n3"}


async def test_who_may_see_nothing_sees_what_they_may_within_a_minute(judge: Judge, reviewer: ClusterReviewer) -> None:
    assert (await scope_of(reviewer, Identity("ann"), {"a", "b"})).namespaces == frozenset()
    judge.rights = {("ann", "a")}
    judge.now += CACHE_SECONDS
    assert (await scope_of(reviewer, Identity("ann"), {"a", "b"})).namespaces == {"a"}


async def test_rights_of_one_user_are_not_those_of_another(judge: Judge, reviewer: ClusterReviewer) -> None:
    judge.rights = {("ann", "")}
    assert await reviewer.may_see(Identity("ann"), None)
    assert not await reviewer.may_see(Identity("bob"), None)
    assert not await reviewer.may_see(Identity("ann"), "a")
    many = await asyncio.gather(*(reviewer.may_see(Identity("ann"), f"n{index}") for index in range(50)))
    assert not any(many)
    assert judge.most_at_once <= 4


async def test_an_error_of_the_api_server_is_no_answer() -> None:
    class Down(Judge):
        async def create(self, *_: Any, **__: Any) -> dict[str, Any]:
            raise ApiError(503, "ServiceUnavailable", "down")

    reviewer = ClusterReviewer(Down(), lambda: 1.0)
    for _ in range(2):
        with pytest.raises(ApiError):
            await reviewer.identify("ann", PEER)


def test_a_review_without_a_user_is_a_refusal() -> None:
    assert identity_of({}) is None
    assert identity_of({"authenticated": True, "user": {}}) is None
    assert identity_of({"authenticated": False, "user": {"username": "ann"}}) is None


@pytest.fixture
def secret(tmp_path: Path) -> Path:
    file = tmp_path / "secret"
    file.write_text("s3cret\n")
    return file


def job_of_team() -> AskedClient:
    client = AskedClient()
    client.holds(TRAINING_JOBS, [job_object("j"), job_object("other", namespace="other", uid="o")])
    return client


async def ask(world: Any, **headers: str) -> tuple[int, Any]:
    async with world.http("") as http:
        answer = await http.get(
            "/api/v1/me", headers={name.replace("_", "-"): value for name, value in headers.items()}
        )
    return answer.status_code, answer.json()


async def test_a_trusted_proxy_names_the_user_and_groups(secret: Path) -> None:
    async with dashboard(job_of_team(), proxy_secret=secret) as world:
        world.reviewer.sees |= {"carl": {"other"}, "ops": {"team"}}
        shown = {SECRET_HEADER: "s3cret"}
        status, answer = await ask(world, **shown, x_forwarded_user="carl", x_forwarded_groups="dev, ops")
        assert (status, answer["user"], answer["namespaces"]) == (200, "carl", ["other", "team"])
        status, answer = await ask(world, **shown, x_forwarded_user="carl")
        assert (status, answer["namespaces"]) == (200, ["other"])


async def test_headers_that_the_proxy_does_not_replace_name_nobody(secret: Path) -> None:
    """A user may send what a proxy passes on: other headers, or its own header a second time."""
    async with dashboard(job_of_team(), proxy_secret=secret) as world:
        world.reviewer.sees |= {"carl": {"other"}, "ops": {"team"}}
        shown = {SECRET_HEADER: "s3cret"}
        _, answer = await ask(world, **shown, x_forwarded_user="carl", x_auth_request_groups="ops")
        assert answer["namespaces"] == ["other"]
        assert (await ask(world, **shown, x_auth_request_user="carl"))[0] == 401
        async with world.http("") as http:
            twice = [(SECRET_HEADER, "s3cret"), ("x-forwarded-user", "carl"), ("x-forwarded-user", "admin")]
            assert (await http.get("/api/v1/me", headers=twice)).status_code == 401


async def test_without_the_secret_a_named_user_is_nobody(secret: Path) -> None:
    async with dashboard(job_of_team(), proxy_secret=secret) as world:
        assert (await ask(world, x_forwarded_user="admin"))[0] == 401
        assert (await ask(world, **{SECRET_HEADER: "wrong"}, x_forwarded_user="admin"))[0] == 401
        assert (await ask(world, **{SECRET_HEADER: "s3cret"}))[0] == 401
        assert (await ask(world, authorization="Bearer admin", x_forwarded_user="ann"))[1]["user"] == "admin"
        _empty(secret)
        assert (await ask(world, **{SECRET_HEADER: ""}, x_forwarded_user="admin"))[0] == 401
        assert (await ask(world, **{SECRET_HEADER: "s3cret"}, x_forwarded_user="admin"))[0] == 401


def _empty(file: Path) -> None:
    file.write_text("")


async def test_a_proxy_is_not_trusted_unless_the_settings_say_so() -> None:
    async with dashboard(job_of_team()) as world:
        assert (await ask(world, **{SECRET_HEADER: "s3cret"}, x_forwarded_user="admin"))[0] == 401


async def test_a_proxy_cannot_give_kubernetes_own_users_and_groups(secret: Path) -> None:
    async with dashboard(job_of_team(), proxy_secret=secret) as world:
        world.reviewer.sees |= {"system:masters": {"*"}, "system:authenticated": {"team"}, "dan": set()}
        shown = {SECRET_HEADER: "s3cret"}
        assert (await ask(world, **shown, x_forwarded_user="system:admin"))[0] == 401
        status, answer = await ask(world, **shown, x_forwarded_user="dan", x_forwarded_groups="system:masters")
        assert (status, answer["everything"], answer["namespaces"]) == (200, False, ["team"])


@pytest.mark.parametrize("header", ["", "Bearer", "Bearer ", "Basic YQ==", "admin"])
async def test_a_header_without_a_token_is_refused(header: str) -> None:
    async with dashboard(job_of_team()) as world:
        status, answer = await ask(world, authorization=header)
        assert (status, answer["error"]) == (401, "send the header Authorization: Bearer TOKEN")
