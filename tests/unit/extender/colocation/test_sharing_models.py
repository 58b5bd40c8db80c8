"""Fitted predictors of what sharing costs, given to the extender as files: the planner goes by them."""

from dataclasses import replace
from itertools import combinations_with_replacement
from pathlib import Path

import msgspec
import pytest

from synergy_core.colocation.predictors.effects import fit_effects
from synergy_core.colocation.predictors.model_format import SharingModel, model_text, parse_model
from synergy_core.colocation.predictors.references import References
from synergy_core.colocation.predictors.sums import fit_sums
from synergy_core.model import snapshot as core
from synergy_core.model.config import PlanConfig
from synergy_core.model.measurement import SharedMeasurement
from synergy_core.model.usage import Usage
from synergy_extender.colocation.models import predictors, read_models
from synergy_extender.config import read_settings
from synergy_extender.planner.process import Planner
from synergy_extender.planner.question import Answer, Asked, question_after
from synergy_service.settings import ConfigError

POD = {"SYNERGY_POD_NAME": "p", "SYNERGY_POD_NAMESPACE": "n"}
LOADS = [Usage(compute=load, bandwidth=0.1) for load in (0.1, 0.3, 0.5)]
HALVED = [SharedMeasurement(pair, (0.45, 0.45)) for pair in combinations_with_replacement(LOADS, 2)]
"""On this GPU type all pairs lose, whatever they do."""


def fitted(gpu_type: str = "V100", *, mps: bool = True) -> str:
    model = SharingModel(
        gpu_type=gpu_type, mps=mps, measurements=len(HALVED), sums=fit_sums(HALVED), effects=fit_effects(HALVED)
    )
    return model_text(model)


def test_the_planner_goes_by_the_model_of_the_gpu_type(tmp_path: Path) -> None:
    (tmp_path / "v100.json").write_text(fitted())
    (tmp_path / "notes.txt").write_text("of no interest")
    nodes = (
        core.Node(
            name="n1", gpu_type="V100", gpus=1, cpu_millis=8000, memory_bytes=1 << 34, replicas=2,
            gpu_memory_bytes=1 << 34,
        ),
    )  # fmt: skip
    jobs = tuple(core.Job(name=name, gpus=1, tenant="t", sharing=True, usage={"V100": LOADS[1]}) for name in ("a", "b"))
    snapshot = core.Snapshot(nodes=nodes, jobs=jobs, now=0.0, round_s=20.0)
    question = question_after(None, Asked(snapshot, {}), PlanConfig(policy="fifo", colocation="auto"), 10.0)
    running = {}
    for name, planner in (("generic", Planner()), ("fitted", Planner(read_models(str(tmp_path))))):
        answer = planner.answer(msgspec.msgpack.encode(question))
        assert isinstance(answer, Answer), answer
        running[name] = [one.job for one in answer.plan.allocations]
    assert running == {"generic": ["a", "b"], "fitted": ["a"]}


def test_the_thesis_mode_predicts_with_the_sums(tmp_path: Path) -> None:
    (tmp_path / "v100.json").write_text(fitted())
    models = read_models(str(tmp_path))
    assert predictors(models, "thesis") == predictors(models, "thesis-fractions") == {"V100": models["V100"].sums}
    assert predictors(models, "auto") == {"V100": models["V100"].effects}


def test_a_model_with_references_predicts_by_them(tmp_path: Path) -> None:
    """Two jobs that lose by sharing to all other predictors are told to lose nothing, being of a measured model."""
    named = Usage(compute=0.5, bandwidth=0.1, model="A")
    references = References.measured([SharedMeasurement((named, named), (0.9, 0.9))])
    (tmp_path / "v100.json").write_text(model_text(replace(parse_model(fitted()), references=references)))
    models = read_models(str(tmp_path))
    assert predictors(models, "auto")["V100"].fractions((named, named)) == (0.9, 0.9)
    assert predictors(models, "thesis") == predictors(models, "thesis-fractions") == {"V100": models["V100"].sums}


def test_the_settings_tell_of_which_types_there_are_models(tmp_path: Path) -> None:
    (tmp_path / "t4.json").write_text(fitted("T4"))
    assert read_settings({**POD, "SYNERGY_SHARING_MODELS": str(tmp_path)}).sharing_models == ("T4",)
    assert read_settings(POD).sharing_models == ()


@pytest.mark.parametrize(
    ("files", "words"),
    [
        ({"a.json": "{}"}, "a.json: "),
        ({"a.json": fitted("")}, "a.json names no GPU type; fit it with --gpu-type"),
        ({"a.json": fitted(mps=False)}, "a.json is of jobs that took turns"),
        ({"a.json": fitted(), "b.json": fitted()}, "b.json is the second model of GPU type V100; keep one"),
    ],
)
def test_a_model_that_cannot_be_used_is_refused_at_the_start(tmp_path: Path, files: dict[str, str], words: str) -> None:
    for name, text in files.items():
        (tmp_path / name).write_text(text)
    with pytest.raises(ConfigError, match="SYNERGY_SHARING_MODELS: .*" + words):
        read_settings({**POD, "SYNERGY_SHARING_MODELS": str(tmp_path)})


def test_a_folder_that_is_not_there_is_refused_too() -> None:
    with pytest.raises(ConfigError, match="SYNERGY_SHARING_MODELS: /nowhere is no folder"):
        read_settings({**POD, "SYNERGY_SHARING_MODELS": "/nowhere"})
