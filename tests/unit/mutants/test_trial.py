"""How one run of tests ends. These tests need the packages of `make mutants` (`make .venv/.mutants-installed`)."""

import time

import pytest

pytest.importorskip("cosmic_ray", reason="only there after `make mutants`")

QUICK = "tests/unit/mutants/test_packages.py::test_both_spellings_of_a_package_share_their_results"


class _Endless:
    """A pytest plugin that computes without end, as a mutant's loop may."""

    def pytest_collection_finish(self) -> None:
        while True:
            pass


class _Waiting:
    """A pytest plugin that needs five seconds and no CPU time, as a run on a busy machine does."""

    def pytest_collection_finish(self) -> None:
        time.sleep(5.0)


def _end(plugin: object, limit_s: float) -> tuple[int, str]:
    from support.mutants.trial import preload, start

    preload()
    trial = start([QUICK], limit_s, None, [plugin])
    while (end := trial.outcome()) is None:
        time.sleep(0.02)
    return end


def test_a_run_that_computes_without_end_is_ended_after_its_cpu_time() -> None:
    from support.mutants.trial import Outcome

    assert _end(_Endless(), limit_s=3.0) == (Outcome.TIMED_OUT, "")


def test_a_run_that_waits_for_a_busy_machine_goes_on() -> None:
    from support.mutants.trial import Outcome

    assert _end(_Waiting(), limit_s=4.0) == (Outcome.PASSED, "")
