"""The JSON form of the models: as short as it can be without saying anything else."""

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from synergy_api.base import Condition
from synergy_api.parts.allocation import Allocation
from synergy_api.parts.progress import Progress
from synergy_api.parts.service import ServiceStatus
from synergy_api.parts.sharing import SharedGPU
from synergy_api.resources.training_job import ProfileStatus, TrainingJobSpec, TrainingJobStatus

SPEC: dict[str, Any] = {"gpus": 1, "steps": 9, "template": {"spec": {"containers": []}}}
WORDS = st.sampled_from(["", "word"])
LISTS = st.sampled_from([[], ["GPU-1"]])
MAPS = st.sampled_from([{}, {"V100": 1.5}])


def _empty(value: Any) -> bool:
    if value in ("", [], {}) or value is None:
        return True
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return any(_empty(one) for one in inner)


def test_a_list_a_map_and_a_text_that_are_empty_by_default_are_left_out() -> None:
    wire = TrainingJobStatus(
        profile=ProfileStatus(state="Skipped"),
        service=ServiceStatus(),
        allocation=Allocation(run=1, state="Released"),
        progress=Progress(),
    ).to_wire()
    assert not _empty(wire)
    assert wire["profile"] == {"state": "Skipped"}
    assert wire["service"]["preemptions"] == 0, "a zero is shown"
    assert wire["allocation"]["admitted"] is False


def test_an_empty_list_that_says_more_than_no_list_is_kept() -> None:
    assert SharedGPU(seen=[]).to_wire() == {"seen": [], "wrongRuns": 0}


def test_an_empty_text_that_must_be_given_is_kept() -> None:
    condition = Condition(type="Valid", status="True", reason="", last_transition_time="2026-01-01T00:00:00Z")
    assert condition.to_wire()["reason"] == ""
    assert "message" not in condition.to_wire()


def test_an_object_of_empty_defaults_only_is_left_out_with_them() -> None:
    wire = TrainingJobSpec.model_validate({**SPEC, "template": {"spec": {"containers": [{}]}}}).to_wire()
    assert "resources" not in wire
    assert wire["template"] == {"spec": {"containers": [{}]}}, "what the user wrote stays as it is"


@given(WORDS, LISTS, MAPS, st.booleans())
def test_a_reader_gets_back_what_was_written(word: str, names: list[str], times: dict[str, float], seen: bool) -> None:
    shared = SharedGPU(asked=names, seen=names if seen else None)
    status = TrainingJobStatus(
        profile=ProfileStatus(state="Complete", fingerprint=word, unchecked=names),
        service=ServiceStatus(received_seconds=times),
        allocation=Allocation(run=1, state="Granted", gpu_type=word, reason=word, shared_gpu=shared),
        progress=Progress(gpu_uuids=names, gpu_partners=names),
    )
    assert TrainingJobStatus.model_validate(status.to_wire()) == status
