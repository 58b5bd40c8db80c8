"""The built-in models on slower GPUs."""

import pytest

from synergy_simulator.workloads.models import CPUS, MODELS, built_in_profiles


@pytest.mark.parametrize("model", sorted(MODELS))
def test_a_slower_gpu_is_slower_only_where_the_cpus_do_not_hold_it_up(model: str) -> None:
    """With n CPUs the fast GPU trains at a speed that the CPUs or the GPU limit; the slow one's limit is a quarter."""
    table = built_in_profiles({"fast": 1.0, "slow": 4.0})
    fast, slow = (table.find(model, kind, 1) for kind in ("fast", "slow"))
    assert fast is not None
    assert slow is not None
    most = [max(speeds[-1] for speeds in one.steps_per_s) for one in (fast, slow)]
    assert most[1] == pytest.approx(most[0] / 4)
    for index, _ in enumerate(CPUS):
        by_cpu = fast.steps_per_s[index][-1], slow.steps_per_s[index][-1]
        assert by_cpu[1] == pytest.approx(min(by_cpu[0], most[1])), "held up by the CPUs alike, or by its GPU"
