"""How processes that trained together end: no thread of the library's own group is left when the interpreter ends."""

import os
import subprocess
import textwrap

from support.job import debian_torch
from support.job.process import free_port, kill_what_is_left

SCRIPT = """
    import atexit, os, sys

    def threads():
        return len(os.listdir("/proc/self/task"))

    atexit.register(lambda: print(counts, threads()))  # runs after those that are registered later
    import torch, torch.distributed as dist
    from synergy_job.torch.together import Together
    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    dist.barrier()
    counts = [threads()]
    together = Together()
    assert together.gathered(dist.get_rank()) == [0, 1]
    counts.append(threads())
    ENDS
    sys.exit(75)
"""


def ended(ends: str) -> list[tuple[int, str]]:
    """Exit code and output of two processes."""
    shared = {"WORLD_SIZE": "2", "MASTER_ADDR": "localhost", "MASTER_PORT": str(free_port())}
    started = [
        subprocess.Popen(
            [debian_torch.PYTHON, "-c", textwrap.dedent(SCRIPT).replace("ENDS", ends)],
            env={**os.environ, **debian_torch.ENVIRON, **shared, "RANK": str(rank)},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            process_group=0,
        )
        for rank in (0, 1)
    ]
    try:
        outputs = [process.communicate(timeout=100)[0] for process in started]
    finally:
        kill_what_is_left(started)
    return [(process.returncode, output) for process, output in zip(started, outputs, strict=True)]


def test_its_threads_end_before_the_interpreter() -> None:
    for code, output in ended(""):
        assert code == 75, output
        before, during, at_end = (int(count) for count in output.replace("[", "").replace("]", ",").split(",") if count)
        assert before < during
        assert at_end == before


def test_a_process_does_not_wait_for_one_that_is_gone() -> None:
    first, gone = ended("if dist.get_rank() == 1: os._exit(3)")
    assert (first[0], gone[0]) == (75, 3)


def test_a_script_may_end_all_groups_itself() -> None:
    for code, output in ended("dist.destroy_process_group()"):
        assert code == 75
        assert "Traceback" not in output
