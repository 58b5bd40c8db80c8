"""`kube-synergy colocation usage`: what a job does to a GPU, from files of the tools that measure it."""

import json
from collections.abc import Iterable
from typing import Any

import click

from synergy_api.quantity import parse_quantity
from synergy_cli.errors import BadInputError
from synergy_cli.files import read_input
from synergy_cli.numbers import Within
from synergy_core.model.usage import MIB
from synergy_profiler.counters.exposition import loads, read_exposition
from synergy_profiler.counters.kernels import Kernel, KernelsError, KernelSums, load_of, read_kernels, sums
from synergy_profiler.counters.load import Load, mean_load

_GPU_UTIL = "DCGM_FI_DEV_GPU_UTIL"
_MEMORY_UTIL = "DCGM_FI_DEV_MEM_COPY_UTIL"
_MEMORY_USED = "DCGM_FI_DEV_FB_USED"
_PERCENT = Within(0, 100)


@click.command("usage")
@click.option("--nsight", metavar="FILE", help="What `ncu --csv` has printed of the job's kernels.")
@click.option("--dcgm", metavar="FILE", help="What dcgm-exporter serves, read while the job trained alone.")
@click.option("--gpu-type", default="", help="The GPU type that it ran on.")
@click.option("--gpu", metavar="UUID", help="With --dcgm: the GPU, if the file has several.")
@click.option(
    "--utilization",
    type=_PERCENT,
    metavar="PERCENT",
    help="With --nsight: utilization.gpu of nvidia-smi without Nsight Compute; default 100.",
)
@click.option("--memory", metavar="QUANTITY", help="GPU memory that it needs, such as 4Gi; --dcgm knows it.")
@click.option("--json", "as_json", is_flag=True, help="One JSON object on stdout and nothing else there.")
def usage_command(
    *,
    nsight: str | None,
    dcgm: str | None,
    gpu_type: str,
    gpu: str | None,
    utilization: float | None,
    memory: str | None,
    as_json: bool,
) -> None:
    """Turn a file of a GPU's counters into an entry of spec.sharing.usage."""
    if memory is not None:
        _check_quantity(memory)
    if (nsight is None) == (dcgm is None):
        raise BadInputError("give one of --nsight FILE and --dcgm FILE")
    if nsight is not None:
        if gpu is not None:
            raise BadInputError("--gpu: an output of Nsight Compute does not name the GPU; leave it out")
        load, entry, notes = _of_kernels(nsight, utilization)
    else:
        if utilization is not None:
            raise BadInputError(f"--utilization: --dcgm has {_GPU_UTIL} for it; leave it out")
        load, entry, notes = _of_exposition(str(dcgm), gpu)
    entry = {"gpuType": gpu_type or "TYPE", **entry, **({"memory": memory} if memory else {})}
    if "memory" not in entry:
        notes.append("the entry still needs the job's memory: give --memory")
    occupancy = None if load.occupancy is None else round(load.occupancy, 4)
    if as_json:
        click.echo(json.dumps({"usage": entry, "occupancy": occupancy, "notes": notes}))
        return
    click.echo(f"- {{{', '.join(f'{name}: {value}' for name, value in entry.items())}}}")
    for line in [*([] if occupancy is None else [f"occupancy {occupancy:.1%}"]), *notes]:
        click.echo(line)


def _check_quantity(memory: str) -> None:
    try:
        if parse_quantity(memory) > 0:
            return
        problem = f"{memory!r} is not above 0"
    except ValueError as error:
        problem = str(error)
    raise BadInputError(f"--memory: {problem}")


def _of_kernels(path: str, utilization: float | None) -> tuple[Load, dict[str, Any], list[str]]:
    busy = 1.0 if utilization is None else utilization / 100
    try:
        kernels = read_kernels(_read(path, "--nsight"))
        load = load_of(kernels, busy)
    except KernelsError as error:
        raise BadInputError(f"{path}: {error}") from error
    notes = [_thesis(kernels, sums(kernels))]
    if any(one.activity is None for one in kernels):
        notes.append("compute is an upper bound: collect sm__cycles_active.avg.pct_of_peak_sustained_elapsed too")
    if utilization is None:
        notes.append("compute and bandwidth are upper bounds: give --utilization, the time in which kernels ran at all")
    return load, _entry(load, None if utilization is None else busy, None), notes


def _read(path: str, name: str) -> str:
    return read_input(path, name).decode("utf-8", "replace")


def _thesis(kernels: Iterable[Kernel], both: KernelSums) -> str:
    return (
        f"thesis, section 4.2, over {len(list(kernels))} kernels: M {both.memory:.4g}, C {both.compute:.4g} "
        "(percent x ns)"
    )


def _of_exposition(path: str, gpu: str | None) -> tuple[Load, dict[str, Any], list[str]]:
    text = _read(path, "--dcgm")
    readings = [loads(part) for part in _readings(text)]
    known = sorted({uuid for one in readings for uuid in one})
    if not known:
        raise BadInputError(f"{path}: no GPU has DCGM_FI_PROF_SM_ACTIVE and DCGM_FI_PROF_DRAM_ACTIVE; enable both")
    if gpu is None and len(known) > 1:
        raise BadInputError(f"{path}: has {len(known)} GPUs ({', '.join(known)}); name the job's with --gpu")
    uuid = known[0] if gpu is None else gpu
    load = mean_load([one[uuid] for one in readings if uuid in one])
    if load is None:
        raise BadInputError(f"{path}: no figures of the GPU {uuid}; it has {', '.join(known)}")
    utilization, memory_utilization = _percents(text, uuid, _GPU_UTIL), _percents(text, uuid, _MEMORY_UTIL)
    used = _values(text, uuid, _MEMORY_USED, most=1e9)
    entry = _entry(load, utilization, memory_utilization)
    if used:
        entry["memory"] = str(int(max(used) * MIB))
    count = sum(uuid in one for one in readings)
    notes = [f"mean of {count} readings of {uuid}"]
    if utilization is None:
        notes.append(f"no {_GPU_UTIL}: models that were fitted to utilisation take compute in its place")
    return load, entry, notes


def _readings(text: str) -> list[str]:
    """Readings that were appended to each other: each begins where the first metric's help comes again."""
    marker = next((line for line in text.splitlines() if line.startswith("# HELP")), None)
    if marker is None:
        return [text]
    first, *rest = text.split(marker)
    return [marker + part for part in rest] if rest else [first]


def _values(text: str, uuid: str, name: str, *, most: float) -> list[float]:
    return [
        one.value for one in read_exposition(text) if (one.name, one.uuid) == (name, uuid) and 0 <= one.value <= most
    ]


def _percents(text: str, uuid: str, name: str) -> float | None:
    found = _values(text, uuid, name, most=100)
    return sum(found) / len(found) / 100 if found else None


def _entry(load: Load, utilization: float | None, memory_utilization: float | None) -> dict[str, Any]:
    further = {"utilization": utilization, "memoryUtilization": memory_utilization}
    return {
        "compute": round(load.compute, 4),
        "bandwidth": round(load.bandwidth, 4),
        "source": "Counters",
        **{name: round(value, 4) for name, value in further.items() if value is not None},
    }
