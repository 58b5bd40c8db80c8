"""What the dispatcher does when something happens: in the hub, in a worker cluster, or to the way between them."""

import asyncio
import copy

import pytest

from support.clusters.stage import AWAY_S, NAMESPACE, Stage
from synergy_api.names import ANNOTATION_GIVE_UP, FINALIZER_CLUSTERS, LABEL_HUB
from synergy_clusters.claims.marks import ANNOTATION_TAKE_OVER, HUB_LEASE
from synergy_clusters.offers import Wish
from synergy_clusters.views import NEVER, read_hub_job
from synergy_kube.resources import LEASES, TRAINING_JOBS


async def started(stage: Stage, cluster: str = "east", name: str = "j") -> None:
    """Submit a job and let it start there."""
    stage.best = cluster
    await stage.submit(name)
    await stage.offered(cluster, name)
    await stage.grants(cluster, name)
    await stage.until(lambda: stage.may_start(cluster, name), f"{name} to start in {cluster}")


async def change(stage: Stage, **spec: object) -> None:
    """Write into the spec of the hub's job, as a user does."""
    await stage.hub.merge_patch(TRAINING_JOBS, "j", {"spec": spec}, NAMESPACE)


async def test_a_new_job_gets_a_copy_in_the_best_cluster_and_starts_once_it_has_a_place(stage: Stage) -> None:
    await stage.submit()
    await stage.offered("east")
    assert stage.told() | {"phase": None} == {
        "cluster": "east", "offer": 1, "fixed": False, "phase": None, "offered": "OfferedToCluster",
    }  # fmt: skip
    assert stage.job()["metadata"]["finalizers"] == [FINALIZER_CLUSTERS]
    await stage.settled()
    assert not stage.may_start("east")
    await stage.grants("east")
    await stage.until(lambda: stage.may_start("east"), "the permission")
    assert stage.told()["fixed"]
    assert not stage.copy("west")


async def test_the_hub_learns_what_the_worker_cluster_says(stage: Stage) -> None:
    await started(stage)
    await stage.says("east", phase="Succeeded", completionTime="2026-11-26T00:00:00Z")
    await stage.until(lambda: stage.told()["phase"] == "Succeeded", "the end")


async def test_jobs_of_the_hub_itself_are_none_of_its_business(stage: Stage) -> None:
    await stage.submit("own", managedBy="kube-synergy.dev/operator")
    await stage.submit()
    await stage.offered("east")
    assert "finalizers" not in stage.job("own")["metadata"]
    assert [one.job.item["metadata"]["name"] for some in stage.rounds for one in some] == ["j"]


async def test_a_waiting_job_leaves_a_cluster_that_is_away_and_its_copy_goes_when_that_is_back(stage: Stage) -> None:
    await stage.submit()
    await stage.offered("east")
    stage.best = "west"
    stage.away("east", AWAY_S - 30)
    await stage.until(lambda: stage.told()["offered"] == "ClusterAway", "a word of it")
    await stage.settled()
    assert stage.told()["cluster"] == "east", "not yet"
    stage.away("east")
    await stage.offered("west")
    assert stage.told()["offer"] == 2
    await stage.grants("west")
    await stage.until(lambda: stage.may_start("west"), "the permission")
    assert stage.copy("east")
    stage.back("east")
    await stage.until(lambda: not stage.copy("east"), "the old copy to go")
    assert stage.may_start("west")


async def test_a_waiting_job_leaves_a_cluster_that_answers_but_does_not_take_the_mark(stage: Stage) -> None:
    await stage.submit()
    await stage.offered("east")
    stage.clusters["east"].refuses = {"get": 403}
    worker = stage.workers.get("east")
    assert worker is not None
    worker.claim("no right")
    stage.best = "west"
    await stage.until(lambda: stage.told()["offered"] == "ClusterAway", "a word of it")
    assert stage.told()["cluster"] == "east", "not yet"
    worker._since -= AWAY_S
    await stage.offered("west")


async def test_a_job_that_may_have_started_stays_in_a_cluster_that_is_away(stage: Stage) -> None:
    await started(stage)
    stage.best = "west"
    stage.away("east", 100 * AWAY_S)
    await stage.until(lambda: stage.told()["offered"] == "ClusterAway", "a word of it")
    await stage.settled()
    assert (stage.told()["cluster"], stage.told()["offer"]) == ("east", 1)
    assert not stage.copy("west")
    stage.back("east")
    await stage.until(lambda: stage.told()["offered"] == "StaysInCluster", "that it is back")


async def test_a_place_that_was_given_while_the_cluster_was_away_counts_when_it_is_back(stage: Stage) -> None:
    await stage.submit()
    await stage.offered("east")
    stage.away("east", 1.0)
    stage.clusters["east"].down = False
    stage.clusters["east"].late = True
    await stage.grants("east")
    stage.clusters["east"].late = False
    await stage.until(lambda: stage.may_start("east"), "the permission")
    assert stage.told()["offer"] == 1


async def give_up(stage: Stage, offer: int) -> None:
    """Say that the copy of this offer never runs again, as a user does."""
    body = {"metadata": {"annotations": {ANNOTATION_GIVE_UP: str(offer)}}}
    await stage.hub.merge_patch(TRAINING_JOBS, "j", body, NAMESPACE)


async def test_a_started_job_whose_cluster_is_lost_says_how_to_release_it_and_goes_elsewhere_then(stage: Stage) -> None:
    await started(stage)
    stage.away("east")
    stage.best = "west"
    await stage.until(lambda: stage.told()["offered"] == "ClusterAway", "a word of it")
    message = next(one["message"] for one in stage.job()["status"]["conditions"] if one["type"] == "Offered")
    assert f"kubectl annotate trainingjob j --namespace team {ANNOTATION_GIVE_UP}=1" in message
    await give_up(stage, 7)
    await stage.settled()
    assert not stage.copy("west"), "that is another offer"
    await give_up(stage, 1)
    await stage.offered("west")
    await stage.grants("west")
    await stage.until(lambda: stage.may_start("west"), "the permission")
    stage.back("east")
    await stage.until(lambda: not stage.copy("east"), "the lost copy to go")
    assert (stage.told()["cluster"], stage.told()["offer"]) == ("west", 2)


async def test_a_copy_in_a_cluster_that_answers_is_not_given_up_now_or_later(stage: Stage) -> None:
    await started(stage)
    await give_up(stage, 1)
    await stage.until(lambda: ANNOTATION_GIVE_UP not in stage.job()["metadata"]["annotations"], "the annotation to go")
    stage.away("east")
    stage.best = "west"
    await stage.until(lambda: stage.told()["offered"] == "ClusterAway", "a word of it")
    await stage.settled()
    assert stage.told()["cluster"] == "east"


async def test_a_started_job_that_is_deleted_goes_without_its_lost_cluster_if_that_is_said(stage: Stage) -> None:
    await started(stage)
    stage.away("east")
    await stage.hub.delete(TRAINING_JOBS, "j", NAMESPACE)
    await stage.settled()
    assert stage.job()
    await give_up(stage, 1)
    await stage.until(lambda: not stage.job(), "the job to go")


async def test_a_hub_restored_while_a_cluster_is_away_starts_nothing_and_deletes_nothing(stage: Stage) -> None:
    await stage.submit()
    await stage.offered("east")
    await stage.settled()
    old = copy.deepcopy(stage.hub.items)
    await stage.grants("east")
    await stage.until(lambda: stage.may_start("east"), "the permission")
    await started(stage, "west", "later")
    await stage.end()
    stage.hub.items = old
    stage.dispatcher, stage.workers = stage.controller()
    stage.clusters["east"].down = True
    stage.best = "west"
    stage.run()
    await stage.until(lambda: stage.told()["offered"] == "HubRefused", "a word of it")
    looks = stage.clusters["west"].asked.count("get")
    await stage.until(lambda: stage.clusters["west"].asked.count("get") > looks + 9, "more looks")
    assert (stage.told()["cluster"], stage.told()["offer"]) == ("east", 1)
    assert not stage.copy("west")
    assert stage.may_start("west", "later"), "the backup does not have this job"
    message = next(one["message"] for one in stage.job()["status"]["conditions"] if one["type"] == "Offered")
    stage.back("east")
    mark = message.split(f"{ANNOTATION_TAKE_OVER}=")[1].split()[0].rstrip(".")
    body = {"metadata": {"annotations": {ANNOTATION_TAKE_OVER: mark}}}
    await stage.hub.merge_patch(LEASES, HUB_LEASE, body, "kube-synergy")
    await stage.until(lambda: stage.told()["fixed"], "what the copy says")
    assert (stage.told()["cluster"], stage.told()["offered"]) == ("east", "StaysInCluster")


@pytest.mark.parametrize("fixed", [False, True])
async def test_a_job_deleted_while_its_cluster_is_away_goes_at_once_only_if_it_never_started(
    stage: Stage, *, fixed: bool
) -> None:
    if fixed:
        await started(stage)
    else:
        await stage.submit()
        await stage.offered("east")
    stage.away("east")
    await stage.hub.delete(TRAINING_JOBS, "j", NAMESPACE)
    if fixed:
        await stage.settled()
        assert stage.job(), "its copy may run"
    else:
        await stage.until(lambda: not stage.job(), "the job to go")
    stage.back("east")
    await stage.until(lambda: not stage.job() and not stage.copy("east"), "both to go")


async def test_a_decision_for_a_job_that_is_gone_is_not_taken_for_another_of_its_name(stage: Stage) -> None:
    stage.hold = asyncio.Event()
    await stage.submit()
    await stage.until(lambda: stage.rounds, "a round")
    first = stage.job()["metadata"]["uid"]
    await stage.hub.delete(TRAINING_JOBS, "j", NAMESPACE)
    await stage.until(lambda: not stage.job(), "the job to go")
    await stage.submit()
    await stage.until(lambda: stage.job()["metadata"].get("finalizers"), "the second job's finalizer")
    stage.hold.set()
    await stage.offered("east")
    asked: list[Wish] = [one for some in stage.rounds for one in some]
    assert [one.job.uid for one in asked] == [first, stage.job()["metadata"]["uid"]]


async def test_nothing_is_kept_of_a_job_that_goes_while_its_decision_is_awaited(stage: Stage) -> None:
    stage.hold = asyncio.Event()
    await stage.submit()
    await stage.until(lambda: stage.rounds, "a round")
    await stage.hub.delete(TRAINING_JOBS, "j", NAMESPACE)
    await stage.until(lambda: not stage.job(), "the job to go")
    await stage.settled()
    stage.hold.set()
    await stage.settled()
    dispatcher = stage.dispatcher
    assert (dispatcher._asked, dispatcher._answers, dispatcher._offer_at, dispatcher._move_at) == (set(), {}, {}, {})


async def test_a_job_that_is_left_out_of_forecasts_is_forgotten_when_it_goes(stage: Stage) -> None:
    await stage.submit()
    await stage.offered("east")
    job, left_out = read_hub_job(stage.job()), stage.dispatcher._offers._left_out
    left_out.add("east", job, "it died", stage.now)
    assert left_out.why_not(job, stage.now)
    await stage.hub.delete(TRAINING_JOBS, "j", NAMESPACE)
    await stage.until(lambda: not left_out.why_not(job, stage.now), "nothing to be kept")
    assert not stage.job()


async def test_a_user_who_suspends_the_job_at_the_moment_of_its_start_is_heard(stage: Stage) -> None:
    await stage.submit()
    await stage.offered("east")
    await stage.settled()
    stage.hub.late = True
    await change(stage, suspend=True)
    await stage.grants("east")
    tries = stage.hub.asked.count("apply")
    await stage.until(lambda: stage.hub.asked.count("apply") > tries + 1, "tries")
    assert not stage.told()["fixed"], "the write names the version that was read"
    stage.hub.late = False
    await stage.until(lambda: stage.copy("east")["spec"].get("suspend"), "the change in the copy")
    assert not stage.may_start("east")


async def test_a_cluster_in_trouble_is_asked_until_it_takes_the_copy(stage: Stage) -> None:
    stage.clusters["east"].refuses = {"create": 500}
    await stage.submit()
    await stage.until(lambda: stage.clusters["east"].asked.count("create") > 2, "more than one try")
    assert stage.told()["cluster"] == "east"
    stage.clusters["east"].refuses = {}
    await stage.offered("east")


async def test_a_job_that_no_cluster_takes_is_asked_about_again_later_or_when_a_cluster_comes(stage: Stage) -> None:
    stage.best = None
    await stage.submit()
    await stage.until(lambda: stage.told()["offered"] == "NoCluster", "a word of it")
    await stage.settled()
    rounds = len(stage.rounds)
    stage.away("west", 1.0)
    stage.back("west")
    await stage.until(lambda: len(stage.rounds) > rounds, "a round for the cluster that is back")
    await stage.settled()
    offered = next(one for one in stage.job()["status"]["conditions"] if one["type"] == "Offered")
    assert offered["message"] == "no cluster takes the job: east: no GPU: the job is offered again every 30 s"
    rounds = len(stage.rounds)
    await asyncio.sleep(0.1)
    assert len(stage.rounds) == rounds, "not all the time"
    stage.best = "west"
    stage.now += 31
    stage.dispatcher.cluster_changed("west", (NAMESPACE, "j"))
    await stage.offered("west")


async def test_a_job_that_no_round_reaches_says_why_and_is_offered_later(stage: Stage) -> None:
    stage.unreached = {"west": "a forecast took longer than 60 s"}
    await stage.submit()
    await stage.until(lambda: stage.told()["offered"] == "NoCluster", "a word of it")
    offered = next(one for one in stage.job()["status"]["conditions"] if one["type"] == "Offered")
    assert offered["message"].endswith("60 s: the job is offered again in the next round of forecasts")
    assert "west: a forecast took longer than 60 s" in offered["message"]
    rounds = len(stage.rounds)
    await stage.until(lambda: len(stage.rounds) > rounds + 1, "another round")
    version = stage.job()["metadata"]["resourceVersion"]
    await stage.until(lambda: len(stage.rounds) > rounds + 3, "more rounds")
    assert stage.job()["metadata"]["resourceVersion"] == version, "the same word is not written again"
    assert all(wish.job.offer != NEVER for wishes in stage.rounds[1:] for wish in wishes), "as it was written"
    stage.unreached = {}
    await stage.offered("east")


async def test_a_waiting_job_moves_when_it_has_waited_for_long_and_another_cluster_is_better(stage: Stage) -> None:
    await stage.submit()
    await stage.offered("east")
    stage.best = "west"
    await stage.settled()
    assert not stage.copy("west")
    stage.now += 601
    await stage.offered("west")
    await stage.until(lambda: not stage.copy("east"), "the old copy to go")


async def test_a_copy_without_a_job_is_deleted_and_that_of_another_hub_is_not(stage: Stage) -> None:
    await stage.submit()
    await stage.offered("east")
    for name, hub in (("left", "hub"), ("other", "another hub")):
        body = {**stage.copy("east"), "metadata": {**stage.copy("east")["metadata"], "name": name}}
        body["metadata"]["labels"] = {LABEL_HUB: hub}
        await stage.clusters["west"].create(TRAINING_JOBS, body, NAMESPACE)
    await stage.until(lambda: not stage.copy("west", "left"), "what is left over to go")
    await stage.settled()
    assert stage.copy("west", "other")


async def test_a_status_that_no_one_can_read_keeps_no_other_job_from_its_cluster(stage: Stage) -> None:
    await stage.submit("odd")
    await stage.offered("east", "odd")
    await stage.hub.apply(TRAINING_JOBS, "odd", {"status": {"cluster": {"offer": -1}}}, NAMESPACE, manager="somebody")
    await stage.submit()
    await stage.offered("east")
    assert stage.job("odd")["status"] == {"cluster": {"offer": -1}}


async def test_an_error_of_one_look_is_not_the_last_look(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    present, looks = stage.dispatcher._sweep, 0

    async def broken(*arguments: object) -> None:
        nonlocal looks
        looks += 1
        if looks < 4:
            raise ZeroDivisionError
        await present(*arguments)  # type: ignore[arg-type]

    monkeypatch.setattr(stage.dispatcher, "_sweep", broken)
    await stage.submit()
    await stage.offered("east")


async def test_two_controllers_at_once_start_a_job_in_one_cluster_only(stage: Stage) -> None:
    second, workers = stage.controller()
    stage.also(second)
    await stage.until(lambda: len(workers.all) == 2 and all(one.reachable for one in workers.all), "the second one")
    for number in range(20):
        stage.best = ("east", "west")[number % 2]
        await stage.submit(f"j{number}")
    names = [f"j{number}" for number in range(20)]
    await stage.until(lambda: all(stage.copy("east", one) or stage.copy("west", one) for one in names), "copies")
    stage.now += 601  # both look for something better
    for _ in range(5):
        for cluster in ("east", "west"):
            for name in names:
                if stage.copy(cluster, name):
                    await stage.grants(cluster, name)
        await asyncio.sleep(0.02)
        assert not [one for one in names if stage.may_start("east", one) and stage.may_start("west", one)]
    await stage.until(
        lambda: all(stage.may_start("east", one) != stage.may_start("west", one) for one in names), "each to start once"
    )


async def test_what_was_never_heard_of_is_found(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("synergy_clusters.work.ROUND_SECONDS", 0.05)
    stage.heard = False
    await stage.submit()
    await stage.offered("east")
    await stage.settled()
    await stage.grants("east")
    await stage.until(lambda: stage.may_start("east"), "the permission")
    body = {**stage.copy("east"), "metadata": {**stage.copy("east")["metadata"], "name": "left"}}
    await stage.clusters["west"].create(TRAINING_JOBS, body, NAMESPACE)
    await stage.until(lambda: not stage.copy("west", "left"), "what is left over to go")


async def test_a_look_at_a_job_of_which_nothing_is_new_asks_no_cluster(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    await started(stage)
    await stage.settled()
    monkeypatch.setattr("synergy_clusters.work.ROUND_SECONDS", 0.0)
    asked = [len(one.asked) for one in (stage.hub, *stage.clusters.values())]
    looks = 0
    steps = stage.dispatcher._steps

    async def counted(key: tuple[str, str]) -> None:
        nonlocal looks
        looks += 1
        await steps(key)

    monkeypatch.setattr(stage.dispatcher, "_steps", counted)
    await stage.until(lambda: looks > 5, "looks")
    assert [len(one.asked) for one in (stage.hub, *stage.clusters.values())] == asked
