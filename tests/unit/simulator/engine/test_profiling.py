"""Partial profiling and what estimates are worth, on the built-in pairs and on the Gavel authors'."""

import pytest

from support import papers
from synergy_simulator.engine.profiling import error_of, profiled
from synergy_simulator.inputs.profiles import read_profiles
from synergy_simulator.workloads.gavel_mix import built_in_speeds


def test_a_few_pairs_of_each_model_tell_most_of_the_others() -> None:
    tables = built_in_speeds().pairs
    found = {name: profiled(table, references=16, beside=4, seed=1) for name, table in tables.items()}
    error = error_of({name: one.estimator for name, one in found.items()}, tables)
    assert all(one.pairs <= one.full / 4 for one in found.values())
    assert all(one.saved == 1.0 - one.pairs / one.full >= 0.75 for one in found.values())
    assert error.pairs > 900
    assert error.mean < 0.3 * error.of_the_mean
    assert error.right > 0.9


@pytest.mark.papers
@pytest.mark.parametrize("seed", range(3))
def test_on_the_authors_table_the_error_is_half_of_that_of_the_mean(seed: int) -> None:
    folder = papers.found("gavel")
    if folder is None:
        pytest.skip("the papers' data tables are not beside the project (PAPERS_DATA names their folder)")
    tables = read_profiles(folder / "simulation_throughputs.json").pairs
    found = {
        beside: error_of(
            {
                name: profiled(table, references=16, beside=beside, seed=seed).estimator
                for name, table in tables.items()
            },
            tables,
        )
        for beside in (4, 8)
    }
    assert found[4].mean < 0.7 * found[4].of_the_mean
    assert found[4].right > 0.7
    assert found[8].right > 0.75
    assert found[8].mean < 0.13
