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
from synergy_clusters.forecast.left_out import LEFT_OUT_SECONDS, SEVERAL
from synergy_clusters.forecast.look import Look, NoForecastError
from synergy_clusters.forecast.process import Answers
from synergy_clusters.forecast.prospects import Placed, Question
from synergy_clusters.offers import Offers, Wish
from synergy_clusters.views import read_hub_job
from synergy_clusters.worker_clusters.worker import Worker
from synergy_extender.planning.policy import PolicyInForce

TOO_LONG = "a forecast took longer than 60 s"
DIED = "the process of a forecast died"
AGAIN = format_time(NOW + LEFT_OUT_SECONDS)


def wish(name: str, waits_in: str = "", generation: int = 1, **but: str) -> Wish:
    offer = ClusterOffer(name=waits_in, offer=1, since=format_time(NOW))
    status = {"status": {"cluster": offer.to_wire()} if waits_in else {}}
    item = job_object(name, spec={"managedBy": MANAGED_BY_CLUSTERS}, generation=generation)
    return Wish(("team", name), read_hub_job(item | status), but)


class Stage:
    """The clusters `east` and `west`, and forecasts that put each job into the last cluster that is asked about."""

    def __init__(self, patch: pytest.MonkeyPatch) -> None:
        self.now = NOW
        self.asked: list[Question] = []
        self.ended_at = ""
        """The cluster at whose reading the process of forecasts ends."""
        self.deadly: set[tuple[str, str]] = set()
        """Jobs at whose forecast in a cluster it ends."""
        self.dies = False
        """Whether the process of forecasts dies before it has told a cluster."""
        self.silent = ""
        """A cluster that answers no more once it has been looked at."""
        self.looks: dict[str, Any] = {}
        self.workers = [self._worker("east"), self._worker("west")]
        self.offers = Offers(lambda: self.workers, lambda wish, answer: None, lambda: self.now)
        patch.setattr(offers, "placed", self._placed)

    def _worker(self, name: str) -> Worker:
        async def see() -> Look:
            if name == self.silent:
                worker.reachable = False
            trouble = self.looks.get(name)
            if trouble is not None:
                raise trouble
            return Look(cluster([node_object("n1")]), PolicyInForce(), frozenset({"team"}), NOW)

        worker = SimpleNamespace(name=name, reachable=True, problem="", observer=SimpleNamespace(look=see))
        return cast(Worker, worker)

    async def _placed(self, question: Question) -> Answers:
        self.asked.append(question)
        if self.dies:
            raise NoForecastError(DIED)
        if self.ended_at:
            unreached = Placed(None, {self.ended_at: TOO_LONG}, reached=False)
            return Answers({one.name: unreached for one in question.jobs}, self.ended_at, TOO_LONG)
        waits_in = {one.name: one.waits_in if one.waits_in in question.clusters else "" for one in question.jobs}
        best = {one.name: max((*one.seen_as, waits_in[one.name])) for one in question.jobs}
        found = {name: Placed(Prospect(NOW, NOW, one) if one else None) for name, one in best.items()}
        pairs = [(job.name, cluster) for job in question.jobs for cluster in sorted(question.clusters)]
        by, at = next((pair for pair in pairs if pair in self.deadly), ("", ""))
        if by:
            unreached = Placed(None, {at: DIED}, reached=False)
            late = dict.fromkeys(list(found)[list(found).index(by) :], unreached)
            return Answers({**found, **late}, at, DIED, by)
        return Answers(found)

    async def round(self, *wishes: Wish) -> dict[str, Placed]:
        return await self.offers._round(list(wishes))

    def clusters(self) -> set[str]:
        """Those of the last question."""
        return set(self.asked[-1].clusters)

    def jobs(self) -> list[str]:
        """Those of the last question."""
        return [one.name for one in self.asked[-1].jobs]


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


async def test_a_cluster_at_whose_reading_the_process_ended_is_left_out_for_a_while(stage: Stage) -> None:
    stage.ended_at = "west"
    first = await stage.round(wish("a"), wish("stays", "west"))
    assert first["team/a"] == Placed(None, {"west": TOO_LONG}, reached=False)
    stage.ended_at = ""
    second = await stage.round(wish("a"), wish("stays", "west"))
    assert stage.clusters() == {"east"}
    assert second["team/a"].best == Prospect(NOW, NOW, "east")
    assert second["team/a"].problems["west"] == f"{TOO_LONG}; the cluster is asked again at {AGAIN}"
    assert second["team/stays"].best is None, "it stays where it is"
    assert stage.jobs() == ["team/a"]
    stage.now += LEFT_OUT_SECONDS
    await stage.round(wish("a"))
    assert stage.clusters() == {"east", "west"}, "it is asked again"


async def test_a_job_at_whose_forecast_the_process_ended_takes_no_cluster_from_the_others(stage: Stage) -> None:
    stage.deadly = {("team/bad", "east"), ("team/bad", "west")}
    first = await stage.round(wish("a"), wish("bad"), wish("c"))
    assert first["team/a"].best == Prospect(NOW, NOW, "west")
    assert not first["team/bad"].reached
    assert not first["team/c"].reached
    second = await stage.round(wish("c", west="a quota"), wish("bad"), wish("stays", "west"))
    assert stage.clusters() == {"east", "west"}
    assert stage.jobs() == ["team/c", "team/stays"]
    assert second["team/c"] == Placed(Prospect(NOW, NOW, "east"), {"west": "a quota"})
    assert second["team/stays"] == Placed(Prospect(NOW, NOW, "west"))
    assert second["team/bad"].best == Prospect(inf, inf, "west"), "the east has just got another job"
    why = f"{DIED} (this job in cluster east); the job is forecast again after {AGAIN}"
    assert second["team/bad"].problems == {"east": why, "west": why}


async def test_a_job_that_is_left_out_stays_where_it_waits_and_goes_nowhere_that_refuses_it(stage: Stage) -> None:
    stage.deadly = {("team/bad", "east")}
    await stage.round(wish("bad"))
    assert (await stage.round(wish("bad", "west")))["team/bad"].best is None, "it stays where it is"
    refused = await stage.round(wish("bad", east="a quota"))
    assert refused["team/bad"].best == Prospect(inf, inf, "west")
    assert refused["team/bad"].problems["east"] == "a quota"
    cast(Any, stage.workers[1]).reachable = False
    assert (await stage.round(wish("bad", "west")))["team/bad"].best == Prospect(inf, inf, "east")
    assert stage.jobs() == [], "it was never asked about again"


async def test_a_job_is_forecast_again_after_its_time_or_once_it_has_changed_or_is_another(stage: Stage) -> None:
    stage.deadly = {("team/bad", "east")}
    for number in range(5):
        await stage.round(wish("bad"))
        assert stage.jobs() == ["team/bad"], number
        await stage.round(wish("bad"), wish("a"))
        assert stage.jobs() == ["team/a"], number
        assert stage.clusters() == {"east", "west"}, "one job takes no cluster, however often it is tried"
        stage.now += LEFT_OUT_SECONDS
    await stage.round(wish("bad"))
    await stage.round(wish("bad", generation=2))
    assert stage.jobs() == ["team/bad"], "its spec has changed"
    await stage.round(wish("bad", generation=2), wish("a"))
    assert stage.jobs() == ["team/a"], "and it is still to blame"
    stage.offers.forget("uid-bad")
    await stage.round(wish("bad", generation=2))
    assert stage.jobs() == ["team/bad"], "it was deleted"


async def test_a_cluster_at_which_several_jobs_end_the_process_is_left_out(stage: Stage) -> None:
    names = "abcd"
    stage.deadly = {(f"team/{name}", "east") for name in names}
    for _ in range(SEVERAL):
        assert not (await stage.round(*map(wish, names)))["team/d"].reached
        assert stage.clusters() == {"east", "west"}
    answers = await stage.round(*map(wish, names))
    assert (stage.clusters(), stage.jobs()) == ({"west"}, ["team/d"])
    assert answers["team/d"].best == Prospect(NOW, NOW, "west")
    assert answers["team/d"].problems["east"] == f"{DIED}; the cluster is asked again at {AGAIN}"


async def test_a_job_leaves_a_cluster_that_is_left_out_once_it_does_not_answer(stage: Stage) -> None:
    stage.ended_at = "west"
    await stage.round(wish("a"))
    stage.ended_at = ""
    cast(Any, stage.workers[1]).reachable = False
    assert (await stage.round(wish("leaves", "west")))["team/leaves"].best == Prospect(NOW, NOW, "east")


async def test_a_cluster_that_stops_to_answer_during_a_round_takes_no_answer_from_other_jobs(stage: Stage) -> None:
    stage.silent = "west"
    answers = await stage.round(wish("waits", "west"), wish("a"))
    assert {answer.best for answer in answers.values()} == {Prospect(NOW, NOW, "west")}


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
