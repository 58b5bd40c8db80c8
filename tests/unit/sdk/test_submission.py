"""The objects that `submit` makes, and what it refuses before it asks a cluster."""

from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import CliRunner

import kube_synergy
from kube_synergy.errors import InvalidJobError
from kube_synergy.making.submission import merged, submission_of_manifest
from support.sdk import own_module
from synergy_api.names import MAX_JOB_NAME
from synergy_api.resources.training_job import TrainingJobSpec
from synergy_cli.main import main
from synergy_operator.profile.fingerprint import fingerprint


@pytest.fixture
def script(tmp_path: Path) -> Path:
    file = tmp_path / "Train_It.py"
    file.write_text("print(1)\n")
    return file


def test_a_script_becomes_a_job_that_owns_it(script: Path) -> None:
    job, program = kube_synergy.manifests(script, args=["--lr", 0.1], image="i", steps=5, gpus=2)
    assert (job["apiVersion"], job["kind"]) == ("kube-synergy.dev/v1alpha1", "TrainingJob")
    spec = TrainingJobSpec.model_validate(job["spec"])
    assert (spec.gpus, spec.steps, spec.profile.mode) == (2, 5, "Auto")
    pod = spec.template["spec"]
    (container,) = pod["containers"]
    assert container["command"] == ["python3", "/kube-synergy/script/Train_It.py"]
    assert container["args"] == ["--lr", "0.1"]
    assert program["data"] == {"Train_It.py": "print(1)\n"}
    assert pod["volumes"] == [{"name": "script", "configMap": {"name": program["metadata"]["name"]}}]
    assert job["metadata"]["name"].startswith("train-it-")


def test_the_same_program_submitted_twice_is_measured_once(script: Path, tmp_path: Path) -> None:
    def mark(program: Path, *args: str) -> str:
        job, _ = kube_synergy.manifests(program, args=args, image="i", steps=5)
        return fingerprint(TrainingJobSpec.model_validate(job["spec"]))

    again = tmp_path / "again" / script.name
    again.parent.mkdir()
    again.write_text(script.read_text())
    assert mark(script) == mark(script) == mark(again)
    assert mark(script) != mark(script, "--lr=0.1")
    again.write_text("print(2)\n")
    assert mark(script) != mark(again)


def test_options_become_fields(script: Path) -> None:
    job, _, claim = kube_synergy.manifests(
        script, image="i", steps=5, name="mine", gpu_types=["T4"], tenant="a", after=["prepare"], profile="Skip",
        env={"A": "1"}, checkpoint_storage="5Gi",
    )  # fmt: skip
    spec = job["spec"]
    assert spec["after"] == [{"job": "prepare"}]
    assert (spec["gpuTypes"], spec["tenant"], spec["profile"]) == (["T4"], "a", {"mode": "Skip"})
    container = spec["template"]["spec"]["containers"][0]
    assert container["env"] == [{"name": "A", "value": "1"}]
    assert {"name": "checkpoints", "mountPath": "/checkpoints"} in container["volumeMounts"]
    assert (claim["kind"], claim["metadata"]["name"]) == ("PersistentVolumeClaim", "mine-checkpoints")
    assert claim["spec"]["resources"] == {"requests": {"storage": "5Gi"}}


def test_further_fields_of_the_spec_win(script: Path) -> None:
    extra = {
        "preemption": "Signal",
        "template": {"spec": {
            "containers": [{"imagePullPolicy": "Never", "env": [{"name": "B", "value": "2"}]}, {"name": "side"}],
            "volumes": [{"name": "data"}],
        }},
    }  # fmt: skip
    job, _ = kube_synergy.manifests(script, image="i", steps=5, env={"A": "1"}, checkpoints="mine", spec=extra)
    pod = job["spec"]["template"]["spec"]
    assert job["spec"]["preemption"] == "Signal"
    assert [one["name"] for one in pod["volumes"]] == ["script", "checkpoints", "data"]
    assert [one["name"] for one in pod["containers"]] == ["train", "side"]
    assert pod["containers"][0]["imagePullPolicy"] == "Never"
    assert [one["name"] for one in pod["containers"][0]["env"]] == ["A", "B"]


def test_merging_replaces_what_is_no_object() -> None:
    assert merged({"a": {"b": 1, "c": 2}, "d": [1]}, {"a": {"b": 3}, "d": [2]}) == {"a": {"b": 3, "c": 2}, "d": [2]}


def test_names_are_valid_however_long_the_program_is_called(tmp_path: Path) -> None:
    file = tmp_path / ("_Very long name" * 10 + ".py")
    file.write_text("")
    names = {kube_synergy.manifests(file, image="i", steps=1)[0]["metadata"]["name"] for _ in range(20)}
    assert len(names) == 20
    for name in names:
        assert len(f"{name}-checkpoints") <= MAX_JOB_NAME
        assert name.replace("-", "").isalnum()
        assert name == name.lower()


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"image": "i"}, "spec: give exactly one of steps, epochs and maxRunSeconds"),
        ({"image": "i", "steps": 1, "epochs": 1}, "spec: give exactly one of steps, epochs and maxRunSeconds"),
        ({"image": "", "steps": 1}, "image: name the image"),
        ({"image": "i", "steps": 0}, "steps: Input should be greater than or equal to 1"),
        ({"image": "i", "steps": 1, "gpus": 0}, "gpus: Input should be greater"),
        ({"image": "i", "steps": 1, "spec": {"epoch": 3}}, "epoch: Extra inputs are not permitted"),
        ({"image": "i", "steps": 1, "checkpoints": "a", "checkpoint_storage": "1Gi"}, "checkpoint_storage: "),
    ],
)
def test_what_is_wrong_is_named_by_its_argument(script: Path, options: Any, says: str) -> None:
    with pytest.raises(InvalidJobError) as caught:
        kube_synergy.manifests(script, **options)
    assert str(caught.value).startswith(says)


def test_a_script_that_cannot_be_sent_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidJobError, match=r"script: cannot read .*none.py"):
        kube_synergy.manifests(tmp_path / "none.py", image="i", steps=1)
    (tmp_path / "large.py").write_text("#" * 900_001)
    with pytest.raises(InvalidJobError, match=r"large.py has 900001 bytes; a ConfigMap holds 900000"):
        kube_synergy.manifests(tmp_path / "large.py", image="i", steps=1)


def test_a_function_brings_what_runs_it() -> None:
    job, program = kube_synergy.manifests(own_module.train, args=[1.5], image="i", steps=1)
    assert set(program["data"]) == {"main.py", "kube_synergy_run.py"}
    assert job["spec"]["template"]["spec"]["containers"][0]["command"] == ["python3", "/kube-synergy/script/main.py"]


def test_other_kinds_are_no_jobs() -> None:
    with pytest.raises(InvalidJobError, match="kind: it is 'Pod'; give a TrainingJob"):
        submission_of_manifest({"kind": "Pod"})
    nothing: Any = None
    with pytest.raises(InvalidJobError, match="kind: it is 'NoneType'"):
        submission_of_manifest(nothing)
    with pytest.raises(InvalidJobError, match="metadata: give the job a name"):
        submission_of_manifest({"kind": "TrainingJob", "metadata": None})


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["--steps", "1"], "--image: a script needs it"),
        (["--image", "i"], "--steps: a script needs one of --steps, --epochs and --max-run-seconds"),
        (["--image", "i", "--steps", "1", "--checkpoints", "a", "--checkpoint-storage", "1Gi"], "checkpoint_storage: "),
    ],
)
def test_the_command_line_says_the_same(script: Path, words: list[str], says: str, tmp_path: Path) -> None:
    (tmp_path / "config").write_text(yaml.safe_dump(KUBECONFIG))
    done = CliRunner().invoke(main, ["submit", str(script), *words, "--kubeconfig", str(tmp_path / "config")])
    assert (done.exit_code, done.stderr.count("\n")) == (2, 1)
    assert says in done.stderr


KUBECONFIG = {
    "apiVersion": "v1", "kind": "Config", "current-context": "c",
    "contexts": [{"name": "c", "context": {"cluster": "c", "user": "u", "namespace": "team"}}],
    "clusters": [{"name": "c", "cluster": {"server": "http://127.0.0.1:9"}}], "users": [{"name": "u", "user": {}}],
}  # fmt: skip


def test_an_array_is_a_number_of_jobs_and_how_many_at_a_time(script: Path) -> None:
    def made(**more: Any) -> Any:
        return kube_synergy.manifests(script, image="i", steps=1, **more)[0]["spec"].get("array")

    assert made(array=4, max_parallel=2) == {"count": 4, "maxParallel": 2}
    assert made(array=4) == {"count": 4}
    assert made() is None
    with pytest.raises(InvalidJobError, match="max_parallel: it belongs to array"):
        made(max_parallel=2)
    with pytest.raises(InvalidJobError, match=r"array\.count"):
        made(array=1001)


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"gpu": 4}, "argument 'gpu' is not there; did you mean 'gpus'?"),
        ({"gpu_types": "V100"}, "gpu_types: it is 'V100'; give a list of names"),
        ({"after": "prepare"}, "after: it is 'prepare'; give a list of names"),
        ({"after": [3]}, r"after: it is \[3\]; give a list of names"),
        ({"env": {"A": 1}}, "env: 'A' is 1; names and values are strings"),
        ({"env": ["A=1"]}, r"env: it is \['A=1'\]; give a dict"),
        ({"spec": [1]}, r"spec: it is \[1\]; give a dict"),
        ({"kwargs": {"rate": 1}}, "kwargs: a script has none; write its options into args"),
    ],
)
def test_an_argument_that_would_be_passed_over_or_misread_is_refused(
    script: Path, options: dict[str, Any], says: str
) -> None:
    with pytest.raises(InvalidJobError, match=says):
        kube_synergy.manifests(script, image="i", steps=5, **options)
