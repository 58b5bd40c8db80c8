"""`kubectl synergy migrate`."""

import json
from pathlib import Path

import pytest
import yaml
from click.testing import CliRunner, Result

from synergy_cli.main import main

EXAMPLES = Path(__file__).parents[4] / "examples" / "moving"


def migrate(*words: str, text: str = "") -> Result:
    return CliRunner().invoke(main, ["migrate", *words], input=text)


def test_the_tenants_are_manifests_with_a_comment_for_each_remark() -> None:
    result = migrate(str(EXAMPLES / "kueue.yaml"))
    assert result.exit_code == 0, result.output
    made = [(one["kind"], one["metadata"]["name"]) for one in yaml.safe_load_all(result.stdout) if one]
    assert made[:4] == [("Tenant", name) for name in ("research", "vision", "speech", "robotics")]
    assert made[4:] == [("TrainingJob", "resnet"), ("TrainingJob", "wav2vec")]
    comments = [line for line in result.stdout.splitlines() if line.startswith("# ")]
    assert comments[0].startswith("# WorkloadPriorityClass urgent value: jobs name a PriorityClass of Kubernetes")
    assert result.stderr == f"4 Tenants, 2 TrainingJobs, {len(comments)} remarks\n"


def test_json_has_the_same() -> None:
    result = migrate(str(EXAMPLES / "kai.yaml"), "--gpu-type", "A100", "-o", "json")
    found = json.loads(result.stdout)
    assert len(found["tenants"]) == 3
    assert [job["metadata"]["name"] for job in found["jobs"]] == ["notebook", "detector"]
    assert {"source", "path", "message"} == set(found["remarks"][0])


def test_files_and_lists_and_standard_input_are_read_together() -> None:
    listed = yaml.safe_dump(
        {"kind": "List", "items": list(yaml.safe_load_all((EXAMPLES / "volcano.yaml").read_text()))}
    )
    options = ("--gpu-type", "T4", "--namespace", "vision=a", "--namespace", "vision=b")
    result = migrate("-", str(EXAMPLES / "kai.yaml"), *options, text=listed)
    tenants = [one for one in yaml.safe_load_all(result.stdout) if one and one["kind"] == "Tenant"]
    assert len(tenants) == 6
    assert tenants[1]["spec"]["namespaces"] == ["a", "b", "vision", "vision-train"]
    assert tenants[1]["spec"]["guarantee"] == {"T4": 8}


@pytest.mark.parametrize(
    ("words", "text", "line"),
    [
        (("-",), "a: [", "error: is not YAML: "),
        (("/gone",), "", "error: FILE: cannot read /gone: No such file or directory; give the path of a file"),
        (("/gone\n",), "", r"error: FILE: cannot read /gone\n: No such file or directory"),
        (("-",), "a: 1", "error: an object without kind or metadata.name; give Kubernetes manifests"),
        (("-", "--gpu-type", "=A"), "", "error: --gpu-type: '=A' names no GPU type; write TYPE or FLAVOR=TYPE"),
        (("-", "--gpu-type", "a="), "", "error: --gpu-type: 'a=' names no GPU type; write TYPE or FLAVOR=TYPE"),
        (("-", "--namespace", "vision"), "", "error: --namespace: 'vision' is not QUEUE=NAMESPACE"),
        ((str(EXAMPLES / "kai.yaml"),), "", "error: Queue research: spec.resources.gpu says no GPU type"),
    ],
)
def test_bad_input_is_one_line(words: tuple[str, ...], text: str, line: str) -> None:
    result = migrate(*words, text=text)
    assert (result.exit_code, result.stdout) == (2, "")
    (told,) = result.stderr.splitlines()
    assert told.startswith(line)


def test_a_list_without_a_list_of_items_is_refused() -> None:
    result = migrate("-", text="kind: List\nitems: 5\n")
    assert (result.exit_code, result.stdout) == (2, "")
    assert "items: must be a list" in result.stderr


def test_no_text_of_the_input_ends_a_comment() -> None:
    *others, job = yaml.safe_load_all((EXAMPLES / "volcano.yaml").read_text())
    job["spec"]["tasks"][0]["name"] = "x\r---\rkind: Forged"
    result = migrate("-", "--gpu-type", "T4", text=yaml.safe_dump_all([*others, job]))
    assert {one["kind"] for one in yaml.safe_load_all(result.stdout) if one} == {"Tenant", "TrainingJob"}
    assert r"task x\r---\rkind: Forged has no GPU" in result.stdout
