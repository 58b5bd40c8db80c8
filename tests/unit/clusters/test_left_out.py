"""What is left out of forecasts: a job that ends their process, and a cluster where several do."""

from support.extender.cluster import job_object
from synergy_clusters.forecast.left_out import LEFT_OUT_SECONDS, SEVERAL, LeftOut
from synergy_clusters.views import HubJob, read_hub_job

DIED = "the process of a forecast died"


def job(name: str, generation: int = 1) -> HubJob:
    return read_hub_job(job_object(name, generation=generation))


def test_one_job_is_left_out_and_no_cluster_however_often_it_comes() -> None:
    left_out = LeftOut()
    for number in range(2 * SEVERAL):
        assert not left_out.add("east", job("a", number), DIED, float(number))
    assert left_out.clusters(9.0) == {}
    assert left_out.why_not(job("b"), 9.0) == ""


def test_several_jobs_in_one_cluster_leave_that_cluster_out_and_no_other() -> None:
    left_out = LeftOut()
    for number in range(SEVERAL - 1):
        assert not left_out.add("west", job(f"w{number}"), DIED, 0.0)
        assert not left_out.add("east", job(f"e{number}"), DIED, 0.0)
    assert left_out.add("east", job("last"), DIED, 0.0)
    assert left_out.clusters(0.0).keys() == {"east"}
    assert left_out.clusters(LEFT_OUT_SECONDS) == {}


def test_jobs_of_long_ago_count_for_no_cluster() -> None:
    left_out = LeftOut()
    for number in range(3 * SEVERAL):
        assert not left_out.add("east", job(str(number)), DIED, number * LEFT_OUT_SECONDS / (SEVERAL - 1))


def test_a_cluster_that_cannot_be_read_is_left_out_at_once_and_no_job_is() -> None:
    left_out = LeftOut()
    assert left_out.add("east", None, DIED, 0.0)
    assert left_out.clusters(0.0)["east"].startswith(f"{DIED}; ")
    assert left_out.why_not(job("a"), 0.0) == ""


def test_a_job_is_left_out_for_its_time_as_it_is() -> None:
    left_out = LeftOut()
    left_out.add("east", job("a"), DIED, 0.0)
    assert left_out.why_not(job("a"), LEFT_OUT_SECONDS - 1)
    assert left_out.why_not(job("a", generation=2), 1.0) == ""
    assert left_out.why_not(job("a"), LEFT_OUT_SECONDS) == ""
    left_out.forget("uid-a")
    assert left_out.why_not(job("a"), 1.0) == ""


def test_no_more_is_kept_than_came_within_the_time() -> None:
    left_out = LeftOut()
    for number in range(1000):
        left_out.add("east", job(str(number)), DIED, number * LEFT_OUT_SECONDS / 10)
        assert len(left_out._jobs) <= 10
