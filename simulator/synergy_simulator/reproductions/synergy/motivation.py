"""Tables 1 to 3 with figure 3: four jobs of four GPUs on two servers; and figure 2, what models gain from more."""

from synergy_core.model.config import PlanConfig
from synergy_core.model.snapshot import Job, Profile, Snapshot
from synergy_core.plan import plan
from synergy_core.throughput.speed import Speed
from synergy_simulator.inputs.clusters import homogeneous
from synergy_simulator.inputs.profiles import GIB
from synergy_simulator.reproductions.common import Findings, Inputs, mean

JOBS = {"J1 ResNet18": "res18", "J2 Audio-M5": "m5", "J3 Transformer": "transformer", "J4 GNMT": "gnmt"}
GPUS = 4


def motivation(inputs: Inputs) -> Findings:
    """Epoch times under both schedules: each job runs one epoch of equal length at its proportional share."""
    cluster = homogeneous(2)
    profiles = {name: _profile(inputs, model, GPUS) for name, model in JOBS.items()}
    jobs = tuple(
        Job(name=name, gpus=GPUS, arrival_s=float(index), profiles={"V100": profiles[name]})
        for index, name in enumerate(JOBS)
    )
    snapshot = Snapshot(nodes=cluster.nodes(), jobs=jobs)
    rows: list[tuple[str, ...]] = []
    epochs: dict[str, list[float]] = {}
    for mechanism, table in (("proportional", "table 2"), ("tune", "table 3")):
        answer = plan(snapshot, PlanConfig(policy="fifo", mechanism=mechanism))
        for given in answer.allocations:
            (worker,) = given.workers
            relative = given.proportional_steps_per_s / given.steps_per_s
            epochs.setdefault(mechanism, []).append(relative)
            amounts = f"{worker.cpu_millis / 1000:g} CPU, {worker.memory_bytes / GIB:.0f} GiB"
            rows.append(
                (table, given.job, f"{worker.node}, {amounts}", f"{relative:.2f}", _paper(mechanism, given.job))
            )
    gain = mean(epochs["proportional"]) / mean(epochs["tune"])
    rows.append(("figure 3", "average JCT", "", f"{gain:.2f}x", "1.5x"))
    rows += _figure2(inputs)
    header = ("", "job", "ours gets", "epoch time, relative", "the paper")
    differs = [
        inputs.profiles_note,
        "No job gets more than saturates it. So amounts differ from table 3 where epochs do not.",
    ]
    return Findings("Motivation: tables 1 to 3, figures 2 and 3", header, rows, differs, (), {"gain": gain})


def _paper(mechanism: str, job: str) -> str:
    if mechanism == "proportional":
        return "12 CPU, 250 GB"
    given = {"J1": "23 CPU, 400 GB", "J2": "12 CPU, 450 GB", "J3": "1 CPU, 100 GB", "J4": "12 CPU, 50 GB"}
    return given[job[:2]]


def _figure2(inputs: Inputs) -> list[tuple[str, ...]]:
    def gain(model: str, more: tuple[float, float], less: tuple[float, float]) -> str:
        speed = Speed(_profile(inputs, model, 1))
        fast, slow = (speed.at((round(cpus * 1000), round(gib * GIB))) for cpus, gib in (more, less))
        return f"{fast / slow:.2f}x"

    return [
        ("figure 2a", "AlexNet, 3 to 12 CPUs", "", gain("alexnet", (12, 250), (3, 250)), "3.1x"),
        ("figure 2a", "ResNet18, 3 to 9 CPUs", "", gain("res18", (9, 250), (3, 250)), "2.3x"),
        ("figure 2a", "GNMT, 1 to 24 CPUs", "", gain("gnmt", (24, 250), (1, 250)), "1x"),
        ("figure 2b", "M5, 62.5 to 250 GiB, 6 CPUs", "", gain("m5", (6, 250), (6, 62.5)), "ResNet18 on OpenImages: 2x"),
        ("figure 2b", "GNMT, 21 to 250 GiB", "", gain("gnmt", (3, 250), (3, 21)), "1x"),
    ]


def _profile(inputs: Inputs, model: str, gpus: int) -> Profile:
    found = inputs.profiles.find(model, "V100", gpus)
    if found is None:
        raise LookupError(f"no profile of {model}")
    return found
