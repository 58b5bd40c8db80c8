"""`kubectl synergy` on the installed product: as a user with the role `edit` in one namespace, and as an admin."""

import asyncio
import json
import subprocess
import sys
from collections.abc import AsyncIterator, Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
import yaml

import synergy_devcluster
from support import recorded
from support.on_cluster.jobs import EXAMPLES_IMAGE, matrix, reaches, restricted_template, submit
from support.on_cluster.service_account import in_namespace, with_token
from support.waiting import eventually
from synergy_kube import KubeClient, Resource
from synergy_kube.resources import TRAINING_JOBS

pytestmark = [pytest.mark.e2e, pytest.mark.usefixtures("dashboard")]

PROGRAMS = Path(sys.executable).parent
ACCOUNTS = Resource("", "v1", "serviceaccounts", "ServiceAccount", namespaced=True)
BINDINGS = Resource("rbac.authorization.k8s.io", "v1", "rolebindings", "RoleBinding", namespaced=True)
TRAIN = """
import sys, time, synergy_job
print("trains with", sys.argv[1:], flush=True)
for step in synergy_job.iterate(range(10**6)):
    time.sleep(0.02)
"""
Said = subprocess.CompletedProcess[str]


@pytest_asyncio.fixture
async def user(kube: KubeClient, namespace: str, devcluster: synergy_devcluster.Cluster, tmp_path: Path) -> Path:
    """The kubeconfig of a user who has the role `edit` in the namespace and none elsewhere."""
    await kube.create(ACCOUNTS, {"metadata": {"name": "ann"}}, namespace)
    subject = {"kind": "ServiceAccount", "name": "ann", "namespace": namespace}
    role = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "edit"}
    await kube.create(BINDINGS, {"metadata": {"name": "ann"}, "roleRef": role, "subjects": [subject]}, namespace)
    request = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {"expirationSeconds": 3600}}
    token = (await kube.create_subresource(ACCOUNTS, "ann", "token", request, namespace))["status"]["token"]
    return in_namespace(with_token(devcluster.kubeconfig, token, tmp_path / "user"), namespace, tmp_path / "user")


@pytest.fixture
def admin(devcluster: synergy_devcluster.Cluster, namespace: str, tmp_path: Path) -> Path:
    """The administrator's kubeconfig, with the namespace as that of its context."""
    return in_namespace(devcluster.kubeconfig, namespace, tmp_path / "admin")


async def say(
    kubeconfig: Path, *words: str, program: str = "kubectl-synergy", code: int = 0, folder: Path | None = None
) -> Said:
    """Run the command as a user would, with this kubeconfig."""
    done = await asyncio.to_thread(
        subprocess.run, [str(PROGRAMS / program), *words], env={"KUBECONFIG": str(kubeconfig), "PATH": "/usr/bin:/bin"},
        capture_output=True, text=True, timeout=120, check=False, cwd=folder,
    )  # fmt: skip
    assert done.returncode == code, f"{' '.join(words)}: {done.stdout}\n{done.stderr}"
    return done


async def data(kubeconfig: Path, *words: str) -> Any:
    return json.loads((await say(kubeconfig, *words, "-o", "json")).stdout)


@pytest_asyncio.fixture
async def jobs(kube: KubeClient, namespace: str, pools: None, user: Path, tmp_path: Path) -> AsyncIterator[None]:
    """`trains` has both GPUs of the real node, `waits` wants one of them."""
    await submit(
        kube, namespace, "trains", gpus=2, gpuTypes=["A100"], steps=100_000, preemption="Signal",
        template=restricted_template(["python3", "-c", TRAIN, "0.1"]),
        profile={"mode": "Provided", "matrices": [matrix("A100", {200: 20.0, 400: 40.0}, 256 << 20)]},
        resources={"max": {"cpu": "400m", "memory": "256Mi"}},
    )  # fmt: skip
    await reaches(kube, namespace, "trains", "Running", seconds=120)
    await submit(
        kube, namespace, "waits", gpus=2, gpuTypes=["A100"], steps=100, profile={"mode": "Skip"},
        template=restricted_template(["python3", "-c", TRAIN]), resources={"max": {"cpu": "400m", "memory": "256Mi"}},
    )  # fmt: skip
    yield


async def queued(kube: KubeClient, namespace: str, name: str) -> None:
    async def has_a_place() -> bool:
        return "queue" in (await kube.get(TRAINING_JOBS, name, namespace)).get("status", {})

    await eventually(has_a_place, seconds=60, what=f"{name} to be in the queue")


async def ranked(kube: KubeClient, namespace: str, name: str) -> int:
    """The job's position once it is the one behind all that are before it: others of the cluster may wait as well."""
    seen: dict[tuple[str, str], Any] = {}

    async def position() -> int | None:
        seen.clear()
        for job in (await kube.list(TRAINING_JOBS))["items"]:
            seen[job["metadata"]["namespace"], job["metadata"]["name"]] = job.get("status", {})
        positions = {key: status["queue"]["position"] for key, status in seen.items() if "queue" in status}
        own = int(positions[namespace, name])
        return own if sum(one < own for one in positions.values()) == own - 1 else None

    try:
        return await eventually(position, seconds=60, what=f"{name} to be the next of the queue")
    except AssertionError as error:
        error.add_note(f"the jobs of the cluster: {seen}")
        raise


@pytest_asyncio.fixture(autouse=True)
async def calm(policy: Callable[..., Any], pools: None) -> None:
    """Nothing is preempted meanwhile: first come, first served."""
    await policy(policy="fifo", mechanism="tune")


async def test_what_a_user_sees(kube: KubeClient, namespace: str, jobs: None, user: Path, admin: Path) -> None:
    await queued(kube, namespace, "waits")
    position = await ranked(kube, namespace, "waits")
    for kubeconfig in (user, admin):
        (row,) = await data(kubeconfig, "queue")
        assert (row["job"], row["position"], row["reason"], row["gpus"]) == ("waits", position, "NoFreeGPU", 2)
        why = await data(kubeconfig, "why", "waits")
        assert why["reason"] == "NoFreeGPU"
        mine = [one for one in why["holders"] if one["job"] == f"{namespace}/trains"]
        assert [(one["gpus"], one["gpu_type"]) for one in mine] == [(2, "A100")]
        assert (await data(kubeconfig, "why", "trains"))["reason"] == "Running"
        (surface,) = await data(kubeconfig, "profile", "trains")
        assert (surface["gpu_type"], surface["cpu_millis"]) == ("A100", [200, 400])
        happened = [one["what"] for one in (await data(kubeconfig, "history", "trains"))["happenings"]]
        assert happened[0] == "Created"
        assert {"FirstStart", "Started"} & set(happened), "by the status, or by the dashboard where one is installed"
        (used,) = await data(kubeconfig, "usage")
        assert (used["namespace"], used["jobs"]) == (namespace, 2)
        told = (await say(kubeconfig, "why", "waits")).stdout
        assert told.startswith(f"{namespace}/waits: Queued, NoFreeGPU\n")
        assert f"position in the queue: {position}" in told
    assert (await data(admin, "policy", "show"))["inForce"]["policy"] == "fifo"
    assert "in force: fifo with tune" in (await say(admin, "policy", "show")).stdout
    tried = (await data(admin, "why", "waits"))["help"]
    told = {one["told"] for one in tried["remedies"]}
    assert "allow V100 too" in told
    assert not any(one["kind"] == "gpus" for one in tried["remedies"]), "no A100 is free"
    assert (await data(admin, "why", "trains"))["help"] is None
    assert (await data(user, "why", "waits"))["help"] is None
    text = await say(user, "why", "waits")
    assert "you may not list nodes, so nothing is tried that would help" in text.stderr
    assert f"only those of {namespace} are considered" in text.stderr
    assert "note" not in (await say(admin, "why", "waits")).stderr


@pytest_asyncio.fixture
async def known(kube: KubeClient, namespace: str, jobs: None) -> AsyncIterator[None]:
    """Of `known`, which waits behind `trains`, all is known; `waits`, whose speed nobody knows, is gone."""
    await kube.delete(TRAINING_JOBS, "waits", namespace)
    await submit(
        kube, namespace, "known", gpus=2, gpuTypes=["A100"], steps=100, preemption="Signal",
        template=restricted_template(["python3", "-c", TRAIN]),
        profile={"mode": "Provided", "matrices": [matrix("A100", {200: 20.0, 400: 40.0}, 256 << 20)]},
        resources={"max": {"cpu": "400m", "memory": "256Mi"}},
    )  # fmt: skip
    yield


@pytest.mark.usefixtures("known")
async def test_when_a_job_starts_and_what_would_change(
    kube: KubeClient, namespace: str, user: Path, admin: Path, tmp_path: Path
) -> None:
    async def told() -> bool:
        status = (await kube.get(TRAINING_JOBS, "known", namespace)).get("status", {})
        return "estimatedStart" in status.get("queue", {})

    await eventually(told, seconds=180, what="the extender's estimate")
    when = await data(admin, "when", "known", "--draws", "5")
    assert (when["state"], when["by"], when["unknown"]) == ("waiting", "command", None)
    assert when["now"] < when["start_without_arrivals"] < when["finish_without_arrivals"]
    assert (await data(admin, "when", "trains", "--draws", "5"))["state"] == "running"
    by_the_cluster = await data(user, "when", "known")
    assert (by_the_cluster["by"], by_the_cluster["unknown"]) == ("extender", None)
    (row,) = await data(user, "queue")
    assert row["start_s"] == pytest.approx(by_the_cluster["start"]["p50"])
    assert "it starts in " in (await say(user, "why", "known")).stdout
    item = await kube.get(TRAINING_JOBS, "known", namespace)
    new = {"kind": "TrainingJob", "metadata": {"name": "new"}, "spec": item["spec"]}
    (tmp_path / "job.yaml").write_text(yaml.safe_dump(new))
    futures = json.loads((await say(admin, "what-if", "-f", str(tmp_path / "job.yaml"), "--json")).stdout)
    starts = {one["job"]: one["start_s"] for one in futures["jobs"]}
    assert starts[f"{namespace}/new"][0] is None
    assert starts[f"{namespace}/new"][1] > starts[f"{namespace}/known"][1]
    assert "you may not list nodes" in (await say(user, "what-if", "--policy", "las", code=1)).stderr


@pytest.mark.usefixtures("known")
async def test_what_happened_is_exported_and_told(namespace: str, user: Path, admin: Path, tmp_path: Path) -> None:
    files = tmp_path / "past"
    assert "2 jobs written" in (await say(admin, "export", "--out", str(files))).stdout
    words = [f"--trace={files / 'trace.csv'}", f"--profiles={files / 'profiles.json'}"]
    words += [f"--cluster={files / 'cluster.yaml'}", "--policy", "fifo", "--json"]
    assert json.loads((await say(admin, "simulate", *words)).stdout)["jobs"] == 2
    for kubeconfig in (user, admin):
        decided = [one for found in await data(kubeconfig, "rounds") for one in found["decided"]]
        assert (f"{namespace}/trains", "started") in [(one["job"], one["what"]) for one in decided]


async def test_nodes_are_for_those_who_may_see_them(
    kube: KubeClient, namespace: str, jobs: None, user: Path, admin: Path
) -> None:
    seen = await data(admin, "top")
    real = next(row for row in seen["nodes"] if f"{namespace}/trains" in row["jobs"])
    assert (real["gpu_type"], real["gpus_given"]) == ("A100", 2)
    hidden = await say(user, "top", "-o", "json")
    assert json.loads(hidden.stdout)["nodes"] == []
    assert "you may not list nodes" in hidden.stderr
    assert [row["gpu_type"] for row in await data(user, "top", "types")] == ["A100"]
    for part in ("types", "nodes", "jobs", "tenants"):
        assert (await say(admin, "top", part)).stdout


async def test_logs_suspend_and_resume(kube: KubeClient, namespace: str, jobs: None, user: Path) -> None:
    lines = (await say(user, "logs", "trains", "--tail", "5")).stdout.splitlines()
    assert any("trains with ['0.1']" in line for line in lines), lines
    assert "suspended" in (await say(user, "suspend", "trains")).stdout
    await reaches(kube, namespace, "trains", "Suspended", seconds=90)
    assert (await data(user, "why", "trains"))["next_step"] == f"kubectl synergy resume trains -n {namespace}"
    assert "unchanged" in (await say(user, "suspend", "trains")).stdout
    assert "resumed" in (await say(user, "resume", "trains")).stdout
    assert "no pod" in (await say(user, "logs", "waits", "--rank", "7")).stderr


async def test_a_script_is_submitted_and_waited_for(
    kube: KubeClient, namespace: str, user: Path, tmp_path: Path
) -> None:
    script = tmp_path / "train.py"
    script.write_text(TRAIN.replace("range(10**6)", "range(50)"))
    words = ["--skip-profile", "--name", "mine", "--image", EXAMPLES_IMAGE, "--steps", "50", "--gpu-type", "A100"]
    words += [str(script), "--", "--lr", "0.1"]
    assert "created (dry run)" in (await say(user, "submit", "--dry-run", "server", *words)).stdout
    done = await say(user, "submit", "--wait", *words)
    assert "trainingjob.kube-synergy.dev/mine created" in done.stdout
    assert "Succeeded" in done.stderr
    assert (await kube.get(TRAINING_JOBS, "mine", namespace))["status"]["phase"] == "Succeeded"
    assert (await data(user, "why", "mine"))["phase"] == "Succeeded"
    refused = await say(user, "submit", "-f", str(script), code=2)
    assert refused.stderr.count("\n") == 1
    again = await say(user, "submit", *words, code=1)
    assert "already exists" in again.stderr


async def test_the_policy_is_for_admins_and_checked(user: Path, admin: Path) -> None:
    assert "changed (dry run)" in (await say(admin, "policy", "set", "policy=las", "--dry-run", "server")).stdout
    assert "did you mean 'policy'?" in (await say(admin, "policy", "set", "polisy=las", code=2)).stderr
    assert "unknown field" in (await say(admin, "policy", "set", "zzzz=las", code=1)).stderr
    assert "Unsupported value" in (await say(admin, "policy", "set", "policy=qqqq", code=1)).stderr
    assert "cannot patch" in (await say(user, "policy", "set", "policy=las", code=1)).stderr
    changed = await say(admin, "policy", "set", "policy=las", "roundSeconds=30")
    assert changed.stdout.splitlines()[-1].endswith("changed")


async def test_the_doctor_finds_a_well_installation(user: Path, admin: Path) -> None:
    checks = {check["what"]: check for check in await data(admin, "doctor")}
    bad = {what: check for what, check in checks.items() if check["level"] in ("failed", "unknown")}
    assert not bad, bad
    seen = {check["what"]: check["level"] for check in await data(user, "doctor")}
    assert seen["GPUs"] == "unknown"
    assert seen["your rights"] == "ok"
    assert "failed" not in seen.values()


async def test_names_are_completed(kube: KubeClient, namespace: str, jobs: None, user: Path) -> None:
    found = (await say(user, "why", "tr", program="kubectl_complete-synergy")).stdout.splitlines()
    assert found == ["trains", ":4"]
    commands = (await say(user, "qu", program="kubectl_complete-synergy")).stdout.splitlines()
    assert commands[0].partition("\t")[0] == "queue"


@pytest.mark.usefixtures("jobs")
async def test_kubectl_completes_names_in_every_shell(user: Path, devcluster: synergy_devcluster.Cluster) -> None:
    """What the completion of bash, zsh and fish calls, as kubectl's own scripts for them say."""
    kubectl = str(devcluster.program("kubectl"))
    environment = {"KUBECONFIG": str(user), "PATH": f"{PROGRAMS}:{Path(kubectl).parent}:/usr/bin:/bin"}

    async def kubectl_says(*words: str) -> str:
        done = await asyncio.to_thread(
            subprocess.run, [kubectl, *words], env=environment, capture_output=True, text=True, timeout=60, check=True
        )
        return done.stdout

    for shell in ("bash", "zsh", "fish"):
        assert "__complete" in await kubectl_says("completion", shell)
    assert (await kubectl_says("__complete", "synergy", "why", "tr")).splitlines()[0] == "trains"
    assert "queue" in (await kubectl_says("__complete", "synergy", "qu")).split()


async def test_what_goes_wrong_is_one_line(user: Path, tmp_path: Path) -> None:
    assert 'trainingjobs.kube-synergy.dev "nobody" not found' in (await say(user, "why", "nobody", code=1)).stderr
    elsewhere = await say(user, "queue", "-A", code=1)
    assert "forbidden" in elsewhere.stderr
    nowhere = await say(tmp_path / "none", "queue", code=2)
    assert nowhere.stderr.count("\n") == 1


SHOWN: Mapping[str, tuple[tuple[str, ...], int]] = {
    "queue": (("queue",), 0),
    "why": (("why", "known"), 0),
    "when": (("when", "known", "--draws", "5"), 0),
    "profile": (("profile", "trains"), 0),
    "history": (("history", "trains"), 0),
    "logs": (("logs", "trains", "--tail", "2"), 0),
    "top": (("top", "types"), 0),
    "usage": (("usage",), 0),
    "rounds": (("rounds",), 0),
    "doctor": (("doctor",), 0),
    "what-if": (("what-if", "--add-nodes", "A100=1"), 1),
    "policy": (("policy", "set", "policy=las", "--dry-run", "server"), 1),
    "export": (("export", "--out", "past"), 0),
    "submit": (("submit", "train.py", "--image", "registry.example.com/pytorch:2", "--steps", "500",
                "--name", "mine", "--dry-run", "server"), 0),
    "suspend": (("suspend", "known"), 0),
    "resume": (("resume", "known"), 0),
}  # fmt: skip
"""The commands that the documentation shows, each with the exit code of a user who may not do it."""
AS_USER = ("why", "when", "what-if", "policy")
"""Those whose answer to a user with rights in one namespace is shown too."""
DATA = ("queue", "why", "when", "profile", "history", "top", "usage", "rounds", "doctor", "export")
"""Those that answer in JSON and YAML too."""


@pytest.mark.timeout(600)
@pytest.mark.usefixtures("known")
async def test_every_command_answers_an_admin_and_a_user(
    kube: KubeClient, namespace: str, user: Path, admin: Path, tmp_path: Path
) -> None:
    async def told() -> bool:
        status = (await kube.get(TRAINING_JOBS, "known", namespace)).get("status", {})
        return "estimatedStart" in status.get("queue", {})

    await eventually(told, seconds=180, what="the extender's estimate")
    names = {namespace: "team-research"}  # as long, so that columns stay in line
    for person, kubeconfig in (("admin", admin), ("user", user)):
        folder = tmp_path / f"home-of-{person}"
        folder.mkdir()
        (folder / "train.py").write_text(TRAIN)
        for name, (words, refused) in SHOWN.items():
            done = await say(kubeconfig, *words, code=refused if person == "user" else 0, folder=folder)
            output = done.stdout + done.stderr
            assert output.strip(), name
            assert person == "user" or "you may not" not in output, output
            if person == "admin" or name in AS_USER:
                command = f"kubectl synergy {' '.join(words)}"
                recorded.record(name if person == "admin" else f"{name}.user", command, output, names)
            if name in DATA and person == "admin":
                asked = (say(kubeconfig, *words, "-o", form, code=done.returncode, folder=folder)
                         for form in ("json", "yaml"))  # fmt: skip
                as_json, as_yaml = await asyncio.gather(*asked)
                assert _shape(json.loads(as_json.stdout)) == _shape(yaml.safe_load(as_yaml.stdout)), name
        assert (folder / "past" / "trace.csv").exists()
        wide = (await say(kubeconfig, "queue", "-o", "wide")).stdout
        assert wide.splitlines()[0].split() != (await say(kubeconfig, "queue")).stdout.splitlines()[0].split()


def _shape(value: Any) -> Any:
    """The names in an answer; figures change from one call to the next."""
    if isinstance(value, dict):
        return {name: _shape(inner) for name, inner in value.items()}
    return [_shape(one) for one in value[:1]] if isinstance(value, list) else None
