"""The options of a plan as the `config` of a snapshot."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from synergy_core.model.config import PlanConfig, PriorityQueues
from synergy_core.model.config.format import config_document, config_of_document, split_config
from synergy_core.model.snapshot import FieldError

configs = st.builds(
    PlanConfig,
    policy=st.sampled_from(["fifo", "las", "2d-las"]),
    mechanism=st.sampled_from(["tune", "drf"]),
    queues=st.builds(
        PriorityQueues,
        thresholds_gpu_s=st.sampled_from([(), (10.0,), (10.0, 200.0)]),
        promote_knob=st.none() | st.floats(0.5, 9),
    ),
    pack_limit=st.none() | st.floats(0, 1),
    minimum_run_s=st.floats(0, 1e4),
    colocation=st.sampled_from(["none", "auto", "gavel"]),
    aware=st.booleans(),
    placement_sensitive=st.booleans(),
)


@given(configs)
def test_what_is_written_is_read_back(config: PlanConfig) -> None:
    assert config_of_document(config_document(config), PlanConfig()) == config


def test_only_what_differs_is_written_beside_policy_and_mechanism() -> None:
    assert config_document(PlanConfig()) == {"policy": "2d-las", "mechanism": "tune"}
    assert config_document(PlanConfig(aware=False))["aware"] is False


def test_what_is_missing_is_as_in_the_base() -> None:
    base = PlanConfig(policy="las", pack_limit=0.3)
    assert config_of_document({"mechanism": "drf"}, base) == PlanConfig(policy="las", mechanism="drf", pack_limit=0.3)


@pytest.mark.parametrize(
    ("document", "words"),
    [
        ({"polisy": "las"}, "config.polisy: 'polisy' is not there; did you mean 'policy'\\? choose one of aware, "),
        ({"aware": "yes, please"}, "config.aware: "),
        ({"colocation": "all"}, "config.colocation: "),
        ({"queues.thresholds_gpu_s": [5.0, 1.0]}, r"thresholds_gpu_s\[1\]: 1 is not above 5"),
    ],
)
def test_what_cannot_be_is_refused_by_its_key(document: dict[str, Any], words: str) -> None:
    with pytest.raises(FieldError, match=words):
        config_of_document(document, PlanConfig())


def test_the_simulators_part_stands_apart() -> None:
    assert split_config({"policy": "las", "fill": False}) == ({"policy": "las"}, {"fill": False})
