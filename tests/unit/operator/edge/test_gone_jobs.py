"""What the operator keeps of jobs that are gone: nothing."""

from pathlib import Path

from support.api_server.watch_server import WatchServer, connected
from support.operator.world import World
from synergy_kube.reflector import Change
from synergy_operator.edge.controller import Controller
from synergy_operator.edge.environment import Environment
from synergy_operator.edge.trimming import VIEW
from synergy_operator.views.pod import read_pod
from synergy_operator.views.pod_events import PodEvents
from synergy_operator.views.stored_job import store_job

KEY = ("team", "job")
PATH = "/apis/kube-synergy.dev/v1alpha1/namespaces/team/trainingjobs/job"


async def test_pods_that_are_deleted_after_their_job_leave_nothing(tmp_path: Path) -> None:
    """The garbage collector deletes them so. They cost the operator 4 KB for each job that came and went."""
    world = World()
    world.settle()
    world.grant()
    world.run_all()
    world.exit("job-1-0", 0)
    job = {"metadata": world.job["metadata"], VIEW: store_job(world.job)}
    pod = {"metadata": world.pods["job-1-0"]["metadata"], VIEW: read_pod(world.pods["job-1-0"])}
    async with connected(WatchServer()) as client:
        controller = Controller(client, Environment("image", "https://extender", tmp_path), lambda: 0.0)
        on_pod = controller._on_owned(controller._pods)
        controller._on_job(Change(KEY, None, job))
        on_pod(Change(("team", "job-1-0"), None, pod))
        controller._on_job(Change(KEY, job, None))
        on_pod(Change(("team", "job-1-0"), pod, None))
        assert controller._pod_events.of(KEY) != PodEvents(), "its end is known"
        assert await controller._reconcile(KEY) is None
        assert controller._pod_events.of(KEY) == PodEvents()


async def test_a_job_is_deleted_once_while_the_watch_does_not_say_that_it_is_gone(tmp_path: Path) -> None:
    world = World(backoffLimit=0, ttlSecondsAfterFinished=60)
    world.settle()
    world.grant()
    world.run_all()
    world.exit("job-1-0", 0)
    world.settle()
    job = {"metadata": world.job["metadata"], VIEW: store_job(world.job)}
    certificate = tmp_path / "ca.crt"
    certificate.write_text("pem")
    server = WatchServer()
    server.now[PATH] = {"status": "Success"}
    async with connected(server) as client:
        environment = Environment("image", "https://extender", certificate)
        controller = Controller(client, environment, lambda: world.now + 61.0)
        controller._on_job(Change(KEY, None, job))
        assert await controller._reconcile(KEY) == 1.0, "the watch gets a second"
    assert server.asked == [PATH]
