"""The message of a waiting job counts its GPUs in plain words."""

import pytest

from support.planner.planning import job
from synergy_core.explain.waiting import waiting
from synergy_core.model.reasons import MESSAGES, Reason

WITH_GPUS = [reason for reason in Reason if "{gpus}" in MESSAGES[reason]]


@pytest.mark.parametrize("reason", WITH_GPUS)
def test_one_gpu_is_not_several(reason: Reason) -> None:
    facts = {"nodes": "1 node", "groups": "g"}
    assert "1 GPUs" not in waiting(job("a", 1), reason, facts).message
    assert "1 GPU" in waiting(job("a", 1), reason, facts).message
    assert "2 GPUs" in waiting(job("a", 2), reason, facts).message


def test_the_message_of_no_free_gpu() -> None:
    assert waiting(job("a", 1), Reason.NO_FREE_GPU).message.startswith("needs 1 GPU at once; jobs ahead of it hold")
