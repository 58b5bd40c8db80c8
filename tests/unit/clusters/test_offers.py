"""Rounds of offers: trouble with one job or one cluster keeps no other job from no other cluster."""

from math import inf
from types import SimpleNamespace
from typing import Any, cast

import pytest

from support.extender.cluster import NOW, cluster, job_object, node_object
from synergy_api.names import MANAGED_BY_CLUSTERS
from synergy_api.parts.relations.clusters import ClusterOffer
from synergy_api.timestamps import format_time
from synergy_clusters import offers
from synergy_clusters.choice import Prospect
from synergy_clusters.forecast import look
from synergy_clusters.forecast.look import Look, NoForecastError
from synergy_clusters.forecast.process import Answers
from synergy_clusters.forecast.prospects import Placed, Question
from synergy_clusters.offers import Offers, Wish
from synergy_clusters.views import read_hub_job
from synergy_clusters.worker_clusters.worker import Worker
from synergy_extender.planning.policy import PolicyInForce

TOO_LONG = "a forecast took longer than 60 s"
DIED = "the process of a forecast died"


def wish(name: str, waits_in: str = "", **but: str) -> Wish:
    offer = ClusterOffer(name=waits_in, offer=1, since=format_time(NOW))
    status = {"status": {"cluster": offer.to_wire()} if waits_in else {}}
    return Wish(("team", name), read_hub_job(job_object(name, spec={"managedBy": MANAGED_BY_CLUSTERS}) | status), but)


class Stage:
    """The clusters `east` and `west`, and forecasts that put each job into the last cluster that is asked about."""

    def __init__(self, patch: pytest.MonkeyPatch) -> None:
        self.asked: list[Question] = []
        self.ended_at = ""
        self.dies = False
        """Whether the process of forecasts dies before it has told a cluster."""
        self.looks: dict[str, Any] = {}
        self.workers = [self._worker("east"), self._worker("west")]
        self.offers = Offers(lambda: self.workers, lambda wish, answer: None)
        patch.setattr(offers, "placed", self._placed)

    def _worker(self, name: str) -> Worker:
        async def see() -> Look:
            trouble = self.looks.get(name)
            if trouble is not None:
                raise trouble
            return Look(cluster([node_object("n1")]), PolicyInForce(), frozenset({"team"}), NOW)

        return cast(Worker, SimpleNamespace(name=name, reachable=True, problem="", observer=SimpleNamespace(look=see)))

    async def _placed(self, question: Question) -> Answers:
        self.asked.append(question)
        if self.dies:
            raise NoForecastError(DIED)
        if self.ended_at:
            unreached = Placed(None, {self.ended_at: TOO_LONG}, reached=False)
            return Answers({one.name: unreached for one in question.jobs}, self.ended_at, TOO_LONG)
        best = {one.name: max(one.seen_as, default="") for one in question.jobs}
        return Answers({name: Placed(Prospect(NOW, NOW, one) if one else None) for name, one in best.items()})

    async def round(self, *wishes: Wish) -> dict[str, Placed]:
        return await self.offers._round(list(wishes))

    def clusters(self) -> set[str]:
        """Those of the last question."""
        return set(self.asked[-1].clusters)


@pytest.fixture
def stage(monkeypatch: pytest.MonkeyPatch) -> Stage:
    return Stage(monkeypatch)


async def test_a_cluster_that_cannot_be_looked_at_says_so_and_the_others_get_the_jobs(stage: Stage) -> None:
    stage.looks["west"] = KeyError("x")
    answers = await stage.round(wish("a"), wish("b"), wish("stays", "west"))
    assert answers["team/a"] == answers["team/b"]
    assert answers["team/a"] == Placed(Prospect(NOW, NOW, "east"), {"west": "it cannot be looked at: KeyError('x')"})
    assert answers["team/stays"].best is None, "it stays where it is"


async def test_a_job_that_cannot_be_read_keeps_no_other_from_the_cluster(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    read = look.read_job

    def reads(item: dict[str, Any]) -> Any:
        if item["metadata"]["name"] == "odd":
            raise TypeError("x")
        return read(item)

    monkeypatch.setattr(look, "read_job", reads)
    answers = await stage.round(wish("a"), wish("odd"))
    assert answers["team/a"].best == Prospect(NOW, NOW, "west")
    assert answers["team/odd"] == Placed(
        None, dict.fromkeys(("east", "west"), "it cannot be read as a job: TypeError('x')")
    )


async def test_a_cluster_at_whose_forecast_the_process_ended_is_left_out_for_a_while(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    stage.ended_at = "west"
    first = await stage.round(wish("a"), wish("stays", "west"))
    assert first["team/a"] == Placed(None, {"west": TOO_LONG}, reached=False)
    stage.ended_at = ""
    second = await stage.round(wish("a"), wish("stays", "west"))
    assert stage.clusters() == {"east"}
    assert second["team/a"].best == Prospect(NOW, NOW, "east")
    assert second["team/a"].problems["west"].startswith(f"{TOO_LONG}; the cluster is asked again at 2")
    assert second["team/stays"].best is None, "it stays where it is"
    assert [one.name for one in stage.asked[-1].jobs] == ["team/a"]
    monkeypatch.setattr(offers, "LEFT_OUT_SECONDS", 0.0)
    stage.ended_at = "west"
    stage.offers._left_out.clear()
    await stage.round(wish("a"))
    await stage.round(wish("a"))
    assert stage.clusters() == {"east", "west"}, "it is asked again"


async def test_a_job_leaves_a_cluster_that_is_left_out_once_it_does_not_answer(stage: Stage) -> None:
    stage.ended_at = "west"
    await stage.round(wish("a"))
    stage.ended_at = ""
    cast(Any, stage.workers[1]).reachable = False
    assert (await stage.round(wish("leaves", "west")))["team/leaves"].best == Prospect(NOW, NOW, "east")


async def test_without_a_forecast_a_cluster_gets_the_jobs_that_start_in_no_other(stage: Stage) -> None:
    stage.ended_at = "west"
    await stage.round(wish("a"))
    stage.ended_at = ""
    answers = await stage.round(wish("a"), wish("only-west", east="refused"), wish("none", east="refused", west="too"))
    assert stage.clusters() == {"east"}
    assert answers["team/a"].best == Prospect(NOW, NOW, "east")
    assert answers["team/only-west"].best == Prospect(inf, inf, "west")
    assert answers["team/none"].best is None


async def test_a_process_that_always_dies_keeps_no_job_from_all_clusters(stage: Stage) -> None:
    stage.dies = True
    answers = await stage.round(*map(wish, "abcd"), wish("stays", "west"))
    chosen = [one.best.cluster if one.best is not None else "" for one in answers.values()]
    assert chosen == ["east", "west", "east", "west", ""]
    assert answers["team/a"] == Placed(Prospect(inf, inf, "east"), {"east": DIED, "west": DIED})
    stage.dies = False
    assert (await stage.round(wish("a")))["team/a"].best == Prospect(NOW, NOW, "west"), "the next round has forecasts"
