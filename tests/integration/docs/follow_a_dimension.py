"""From a node with ephemeral storage to the request of a worker pod: run by `test_recipe_of_a_dimension.py` beside
copies of the packages to which the recipe has been applied. Prints what each station knows of the dimension."""

import json

from support.extender.cluster import GI, NOW, cluster, job, job_object, node_object
from support.operator.world import SETTINGS
from synergy_api.resources.training_job import TrainingJobSpec
from synergy_core.model.config import PlanConfig
from synergy_core.plan import plan
from synergy_extender.cluster.ledger import AssumedBindings
from synergy_extender.cluster.trims import trim_node
from synergy_extender.decisions.decide import decide
from synergy_extender.decisions.plan_result import PlanResult, stance
from synergy_extender.rounds import Moment, Rounds
from synergy_extender.snapshot.snapshot import build_snapshot
from synergy_operator.pods.gang import gang_workers, worker_pod
from synergy_operator.views.job import read_job

ROUNDS = Rounds(20)


def main() -> None:
    node = node_object("n1", gpus=2)
    node["status"]["allocatable"]["ephemeral-storage"] = "100Gi"
    node = trim_node(node)
    wanted = {"resources": {"min": {"ephemeralStorage": "70Gi"}}}
    state = cluster([node], [job("first", spec=wanted), job("second", spec=wanted)])
    snapshot = build_snapshot(state, mode="fill", now=NOW, round_s=20).snapshot
    made = plan(snapshot, PlanConfig(mode="fill"))
    result = PlanResult(made, "fill", {key: stance(view, NOW) for key, view in state.jobs.items()}, {})
    changes = decide(state, Moment(NOW, ROUNDS, ROUNDS.at(NOW)), result, AssumedBindings()).changes
    granted = {change.job.key.name: change.allocation for change in changes if change.allocation is not None}
    (name, allocation), *others = granted.items()
    view = read_job(job_object(name, spec=wanted))
    worker = gang_workers(name, allocation, None)[0]
    spec = TrainingJobSpec.model_validate(job_object(name, spec=wanted)["spec"])
    pod = worker_pod(view, spec, allocation.run, worker, size=1, settings=SETTINGS)
    request = {"gpuType": "V100", "gpus": 1, "cpuMillis": 1000, "memoryBytes": GI, "ephemeralStorageBytes": 30 * GI}
    measured = job("p", status={"phase": "Profiling", "profile": {"state": "Waiting", "request": request}})
    profiles = build_snapshot(cluster([node], [measured]), mode="fill", now=NOW, round_s=20).snapshot
    found = {
        "profile run": dict(profiles.jobs[0].further_min),
        "node": dict(snapshot.nodes[0].further),
        "least": dict(snapshot.jobs[0].further_min),
        "granted": [name, *(other for other, _ in others)],
        "status": allocation.to_wire()["workers"][0]["ephemeralStorageBytes"],
        "requests": pod["spec"]["containers"][0]["resources"]["requests"],
        "limits": pod["spec"]["containers"][0]["resources"]["limits"],
    }
    print(json.dumps(found))


main()
