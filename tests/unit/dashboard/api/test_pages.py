"""Each page of the API, and what of it a user sees who may not see all namespaces."""

from typing import Any

import pytest
from sqlalchemy.exc import OperationalError

from support.dashboard.server import AskedClient, dashboard
from support.extender.cluster import NOW, allocation, job_object, node_object, share
from synergy_api.timestamps import format_time
from synergy_dashboard.facts import JobFact, ResizeFact, RunFact, Sample, Share, Usage, UseSample, WaitFact
from synergy_kube import ApiError
from synergy_kube.resources import EVENTS, NODES, SCHEDULING_POLICIES, TENANTS, TRAINING_JOBS

MATRIX = {"gpuType": "V100", "cpuMillis": [1000, 2000], "memoryBytes": [1 << 30], "stepsPerSecond": [[1.0], [2.0]]}
WAITS = {"position": 1, "reason": "NoFreeGPU", "message": "words"}


def cluster() -> AskedClient:
    """A job of `team` and one of `other` share a node; another one of each waits."""
    client = AskedClient()
    held = allocation(share("n1", 2), stepsPerSecond=3.0, proportionalStepsPerSecond=2.0)
    partners = {"asked": ["other/there"], "seen": ["other/there"]}
    client.holds(NODES, [node_object("n1"), node_object("n2", gpu_type="T4")])
    policy = {"policy": "las", "roundSeconds": 300}
    client.holds(SCHEDULING_POLICIES, [{"metadata": {"name": "default"}, "spec": policy}])
    caps = {"maxWeight": 4.0, "maxNeverPreemptedGPUs": 8}
    status = {"summary": {"guaranteed": "4 V100", "borrowed": "1 V100"}}
    client.holds(TENANTS, [{"metadata": {"name": "team"}, "spec": {"caps": caps}, "status": status}])
    client.holds(
        TRAINING_JOBS,
        [
            job_object("here", gpus=2, status={"phase": "Running", "allocation": {**held, "sharedGpu": partners}},
                       spec={"profile": {"mode": "Provided", "matrices": [MATRIX]}}),
            job_object("there", gpus=2, namespace="other", uid="uid-there",
                       status={"phase": "Running", "allocation": held}),
            job_object("next", status={"queue": WAITS}),
            job_object("later", namespace="other", uid="uid-later", status={"queue": {**WAITS, "position": 2}}),
        ],
    )  # fmt: skip
    return client


def fact(name: str, namespace: str = "team", **more: Any) -> JobFact:
    known = {"uid": f"uid-{name}", "tenant": namespace, "created_s": NOW - 1000, "gpus": 2, "gpu_types": ()}
    return JobFact(namespace=namespace, name=name, steps=1000, weight=1.0, **{**known, **more})


def run(job: str, number: int = 1, **more: Any) -> RunFact:
    shares = (Share(node="n1", gpus=2, cpu_millis=2000, memory_bytes=1 << 30),)
    known = {"purpose": "Train", "gpu_type": "V100", "gpus": 2, "shares": shares, "granted_s": NOW - 900}
    return RunFact(uid=f"uid-{job}", run=number, **{**known, **more})


async def test_who_asks_and_what_they_may_see() -> None:
    async with dashboard(cluster()) as world:
        assert await world.get("me") == {
            "user": "admin", "everything": True, "namespaces": ["other", "team"], "version": "0.0.0"
        }  # fmt: skip
        ann = await world.get("me", "ann")
        assert (ann["everything"], ann["namespaces"]) == (False, ["team"])
        assert (await world.get("me", "bob"))["namespaces"] == []


async def test_the_cluster_page_has_all_that_is() -> None:
    async with dashboard(cluster()) as world:
        world.history.all_jobs = [fact("here")]
        world.history.all_use = [
            UseSample(at_s=NOW - age, gpu_type="V100", gpus=8, gpus_given=4, gpus_wanted=1, waiting=1)
            for age in (90_000, 60)
        ]
        page = await world.get("cluster")
    assert page["policy"] == {
        "name": "las", "mechanism": "tune", "round_s": 300.0, "round_ends_s": 1_000_200.0,
        "spec": {"policy": "las", "roundSeconds": 300},
    }  # fmt: skip
    assert [(row["gpu_type"], row["gpus"], row["gpus_given"]) for row in page["types"]] == [
        ("T4", 8, 0),
        ("V100", 8, 4),
    ]
    assert page["nodes"][0]["jobs"] == ["other/there", "team/here"]
    assert [(row["job"], row["gain"], row["partners"]) for row in page["jobs"]] == [
        ("other/there", 1.5, []), ("team/here", 1.5, ["other/there"])
    ]  # fmt: skip
    assert (page["waiting"], page["waiting_by_reason"], page["hidden"]) == (2, {"NoFreeGPU": 2}, 0)
    assert [row["tenant"] for row in page["tenants"]] == ["other", "team"]
    assert [one["at_s"] for one in page["use"]] == [NOW - 60]
    assert page["recorded_since_s"] == NOW - 1000


async def test_hidden_jobs_are_counted_but_not_named() -> None:
    async with dashboard(cluster()) as world:
        answer = await world.get("cluster", "ann")
        assert "other" not in str(answer)
        assert (answer["hidden"], answer["waiting"]) == (2, 1)
        assert answer["types"][1]["gpus_given"] == 4
        assert (answer["nodes"][0]["gpus_given"], answer["nodes"][0]["jobs"]) == (4, ["team/here"])
        assert answer["jobs"][0]["partners"] == []
        queue = await world.get("queue", "ann")
        assert ([row["job"] for row in queue["rows"]], queue["hidden"]) == (["next"], 1)
        tenants = await world.get("tenants", "ann")
        assert ([one["row"]["tenant"] for one in tenants["tenants"]], tenants["hidden"]) == (["team"], 1)


async def test_the_queue_is_in_order() -> None:
    async with dashboard(cluster()) as world:
        page = await world.get("queue")
    assert [(row["namespace"], row["position"], row["waiting_s"]) for row in page["rows"]] == [
        ("team", 1, 100.0), ("other", 2, 100.0)
    ]  # fmt: skip
    assert (page["forecasts"], page["hidden"], page["now"]) == ({}, 0, NOW)


async def test_a_job_that_exists_has_the_present_and_the_past() -> None:
    client = cluster()
    about = {"involvedObject": {"uid": "uid-next"}, "metadata": {"namespace": "team"}}
    client.holds(EVENTS, [{**about, "lastTimestamp": format_time(NOW), "reason": "Queued"}])
    async with dashboard(client) as world:
        world.history.all_jobs = [fact("next")]
        world.history.all_runs = [run("next", partners=("other/there", "team/here"), ended_s=NOW - 800)]
        world.history.all_waits = [
            WaitFact(uid="uid-next", since_s=NOW - 800, until_s=None, reason="NoFreeGPU", message="", position=1)
        ]
        world.history.all_samples = [
            Sample(uid="uid-next", at_s=NOW, steps=1, steps_per_s=1.0, cpu_millis=1, memory_bytes=1)
        ]
        page = await world.get("jobs/team/next", "ann")
    assert (page["phase"], page["why"]["reason"], page["why"]["holders"]) == (
        "Queued", "NoFreeGPU", [{"job": "team/here", "gpus": 2, "gpu_type": "V100", "tenant": "team"}]
    )  # fmt: skip
    assert [one["what"] for one in page["events"]] == ["Created", "Queued"]
    assert page["runs"][0]["partners"] == ["team/here"]
    assert (len(page["waits"]), len(page["samples"]), page["resizes"]) == (1, 1, [])


async def test_a_running_job_has_its_surface() -> None:
    async with dashboard(cluster()) as world:
        page = await world.get("jobs/team/here")
    (surface,) = page["surfaces"]
    assert (surface["gpu_type"], surface["given"]) == ("V100", [1000, 1 << 30])


async def test_a_job_that_is_gone_has_its_past_only() -> None:
    async with dashboard(cluster()) as world:
        world.history.all_jobs = [fact("old", phase="Failed", finished_s=NOW - 500, deleted_s=NOW - 400)]
        world.history.all_runs = [run("old", outcome="Failed", ended_s=NOW - 500)]
        page = await world.get("jobs/team/old")
    assert (page["phase"], page["why"], page["surfaces"], page["failures"]) == ("Failed", None, [], 1)
    assert page["finished_s"] == NOW - 500


async def test_hidden_partners_of_a_job_that_is_gone_stay_hidden() -> None:
    async with dashboard(cluster()) as world:
        world.history.all_jobs = [fact("old", phase="Failed", finished_s=NOW - 500, deleted_s=NOW - 400)]
        world.history.all_runs = [run("old", ended_s=NOW - 500, partners=("other/there", "team/here"))]
        page = await world.get("jobs/team/old", "ann")
    assert page["runs"][0]["partners"] == ["team/here"]


async def test_a_job_that_took_the_name_of_another_has_not_its_past() -> None:
    async with dashboard(cluster()) as world:
        world.history.all_jobs = [fact("next", uid="uid-before")]
        world.history.all_runs = [run("before")]
        assert (await world.get("jobs/team/next"))["runs"] == []


async def test_jobs_that_nobody_knows_or_that_are_hidden() -> None:
    async with dashboard(cluster()) as world:
        assert "there is no TrainingJob team/none" in (await world.get("jobs/team/none", status=404))["error"]
        hidden = await world.get("jobs/other/there", "ann", status=403)
        unknown = await world.get("jobs/other/none", "ann", status=403)
        assert hidden == unknown
        world.client.broken = ApiError(500, "InternalError", "down")
        assert "down" in (await world.get("jobs/team/here", status=503))["error"]


async def test_rounds_have_who_came_and_left_and_the_bars() -> None:
    async with dashboard(cluster()) as world:
        world.history.all_jobs = [fact("here"), fact("there", "other")]
        world.history.all_runs = [
            run("here", granted_s=NOW - 400, ended_s=NOW - 90, outcome="Yielded", revoked_reason="for team/next"),
            run("there", granted_s=NOW - 1200, ended_s=None),
        ]
        shares = (Share(node="n1", gpus=2, cpu_millis=1000, memory_bytes=1),)
        world.history.all_resizes = [ResizeFact(uid="uid-there", run=1, at_s=NOW - 90, shares=shares)]
        page = await world.get("rounds?rounds=2")
        mine = await world.get("rounds?rounds=2", "ann")
        before = await world.get(f"rounds?rounds=1&until_s={NOW - 300}")
    assert (page["since_s"], page["until_s"], page["round_s"]) == (999_600.0, 1_000_200.0, 300.0)
    newest, older = page["rounds"]
    assert newest["left"] == [{"job": "team/here", "outcome": "Yielded", "reason": "for team/next"}]
    assert (newest["resized"], newest["came"]) == (["other/there"], [])
    assert (older["came"], older["left"], older["gpus_given"]) == (["team/here"], [], 4)
    assert [(one["job"], one["node"], one["end_s"]) for one in page["segments"]] == [
        ("other/there", "n1", None), ("team/here", "n1", NOW - 90)
    ]  # fmt: skip
    assert "other" not in str(mine)
    assert before["rounds"][0]["start_s"] == 999_600.0


async def test_tenants_have_what_they_have_had_and_their_caps() -> None:
    had = {"gpu_hours": 2.0, "waiting_hours": 1.0, "gained_gpu_hours": 0.5, "runs": 3, "preemptions": 1}
    async with dashboard(cluster()) as world:
        world.history.all_usage = [
            Usage(tenant="team", namespace="team", **had), Usage(tenant="gone", namespace="other", **had)
        ]  # fmt: skip
        page = await world.get("tenants?since_s=900000")
    gone, other, team = page["tenants"]
    assert (gone["row"]["running"], gone["usage"][0]["gpu_hours"], gone["max_weight"]) == (0, 2.0, None)
    assert (other["row"]["running"], other["usage"]) == (1, [])
    assert (team["never_preempted_gpus"], team["max_weight"], page["since_s"]) == (8, 4.0, 900_000.0)
    assert (team["guaranteed"], team["borrowed"], other["guaranteed"]) == ("4 V100", "1 V100", "")


@pytest.mark.parametrize("path", ["cluster", "queue", "rounds", "tenants", "export", "stream", "jobs/team/next", "me"])
async def test_every_page_needs_a_token_and_rights(path: str) -> None:
    async with dashboard(cluster()) as world:
        assert "error" in await world.get(path, "", status=401)
        assert "error" in await world.get(path, "mallory", status=401)
        if path != "me":
            assert "bob may not get trainingjobs" in (await world.get(path, "bob", status=403))["error"]


@pytest.mark.parametrize("path", ["cluster", "queue", "rounds", "tenants", "export", "stream", "jobs/team/next", "me"])
async def test_nothing_is_said_before_the_cluster_was_read_or_while_nobody_can_review(path: str) -> None:
    async with dashboard(cluster()) as world:
        world.reviewer.error = ApiError(500, "InternalError", "etcd is away")
        assert "etcd is away" in (await world.get(path, status=503))["error"]
    async with dashboard(synced=False) as world:
        world.live._reflectors["jobs"].synced.clear()
        assert "has not been read" in (await world.get(path, status=503))["error"]


async def test_a_database_that_is_away_is_said() -> None:
    async with dashboard(cluster()) as world:
        world.history.broken = OperationalError("SELECT secret", {}, Exception("no route"))
        answer = await world.get("cluster", status=503)
        assert "history cannot be read" in answer["error"]
        assert "SELECT" not in answer["error"]


@pytest.mark.parametrize(
    ("path", "field"),
    [("rounds?rounds=0", "rounds"), ("rounds?until_s=soon", "until_s"), ("tenants?since_s=-1", "since_s"),
     ("tenants?since_s=nan", "since_s"), ("export?since_s=inf", "since_s")],
)  # fmt: skip
async def test_bad_parameters_are_named(path: str, field: str) -> None:
    async with dashboard(cluster()) as world:
        assert field in (await world.get(path, status=422))["error"]


async def test_unknown_paths_are_errors_of_the_same_form(tmp_path: Any) -> None:
    async with dashboard(cluster(), static=tmp_path / "none") as world:
        assert await world.get("nothing", status=404) == {"error": "Not Found"}
        async with world.http() as http:
            assert (await http.delete("/api/v1/cluster")).json() == {"error": "Method Not Allowed"}


async def test_the_page_and_its_charts_need_no_token_and_all_answers_have_the_headers(tmp_path: Any) -> None:
    (tmp_path / "index.html").write_text("<title>page</title>")
    async with dashboard(cluster(), static=tmp_path) as world, world.http("") as http:
        answers = [await http.get(path) for path in ("/", "/api/v1/me", "/none.js", "/vendor/echarts.min.js")]
    assert [one.status_code for one in answers[:3]] == [200, 401, 404]
    assert "page" in answers[0].text
    assert answers[2].json() == {"error": "Not Found"}
    for one in answers:
        assert one.headers["content-security-policy"].startswith("default-src 'self';")
        assert "frame-ancestors 'none'" in one.headers["content-security-policy"]
        assert (one.headers["x-frame-options"], one.headers["x-content-type-options"]) == ("DENY", "nosniff")
    assert answers[1].headers["cache-control"] == "no-store"


async def test_a_cluster_without_a_policy_has_none() -> None:
    async with dashboard() as world:
        page = await world.get("cluster")
        assert (page["policy"], page["nodes"], page["recorded_since_s"]) == (None, [], None)
        assert (await world.get("rounds?rounds=1"))["round_s"] == 300.0


async def test_the_description_names_each_route() -> None:
    async with dashboard() as world:
        paths = world.app.openapi()["paths"]
    routes = {"me", "cluster", "queue", "rounds", "jobs/{namespace}/{name}", "tenants", "what-if", "export", "stream"}
    routes |= {"jobs/{namespace}/{name}/help", "jobs/{namespace}/{name}/history", "decisions", "usage"}
    assert paths.keys() == {f"/api/v1/{one}" for one in routes}
