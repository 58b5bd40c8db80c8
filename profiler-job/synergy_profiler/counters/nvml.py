"""NVML's GPU performance monitoring (GPM) interface: `python3 -m synergy_profiler.counters.nvml --every-ms MS`.

Prints a line for each GPU and interval: its UUID, SM activity, SM occupancy and the used part of the memory bandwidth,
in percent. Where GPM cannot be had, prints one line that begins with `problem:`, and ends with exit code 1. GPUs of
Hopper's generation and newer ones have it. A process of its own: a fault in the driver's library ends no measurement.
"""

from __future__ import annotations

import argparse
import sys
import time
from ctypes import (
    CDLL,
    Structure,
    byref,
    c_char_p,
    c_double,
    c_uint,
    c_void_p,
    create_string_buffer,
)
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Sequence

LIBRARY = "libnvidia-ml.so.1"
PROBLEM = "problem: "
_SM_UTIL, _SM_OCCUPANCY, _DRAM_BW_UTIL = 2, 3, 10  # nvmlGpmMetricId_t
_METRICS = (_SM_UTIL, _SM_OCCUPANCY, _DRAM_BW_UTIL)
_VERSION = 1  # NVML_GPM_METRICS_GET_VERSION and NVML_GPM_SUPPORT_VERSION
_ROOM = 512
"""Entries of the structure's array; NVML reads as many as are asked for, and its header's bound has grown."""
_UUID_BYTES = 96


class _Info(Structure):
    _fields_ = (("short_name", c_char_p), ("long_name", c_char_p), ("unit", c_char_p))


class _Metric(Structure):
    _fields_ = (("metric_id", c_uint), ("result", c_uint), ("value", c_double), ("info", _Info))


class _MetricsGet(Structure):
    _fields_ = (
        ("version", c_uint),
        ("count", c_uint),
        ("sample1", c_void_p),
        ("sample2", c_void_p),
        ("metrics", _Metric * _ROOM),
    )


class _Support(Structure):
    _fields_ = (("version", c_uint), ("supported", c_uint))


class GpmError(Exception):
    """NVML does not tell; the message says what it said."""


class Gpu:
    """A GPU whose samples are taken one after the other."""

    def __init__(self, nvml: Nvml, handle: c_void_p) -> None:
        self._nvml = nvml
        self._handle = handle
        self.uuid = nvml.uuid(handle)
        support = _Support(version=_VERSION)
        nvml.call("nvmlGpmQueryDeviceSupport", handle, byref(support))
        if not support.supported:
            raise GpmError(f"{self.uuid} does not support NVML's GPM interface: only Hopper and newer GPUs do")
        self._before, self._after = (nvml.new_sample() for _ in range(2))
        nvml.call("nvmlGpmSampleGet", handle, self._before)

    def percents(self) -> tuple[float, ...]:
        """SM activity, SM occupancy and bandwidth since the call before, in percent. Raises GpmError."""
        self._nvml.call("nvmlGpmSampleGet", self._handle, self._after)
        asked = _MetricsGet(version=_VERSION, count=len(_METRICS), sample1=self._before, sample2=self._after)
        for index, number in enumerate(_METRICS):
            asked.metrics[index].metric_id = number
        self._nvml.call("nvmlGpmMetricsGet", byref(asked))
        self._before, self._after = self._after, self._before
        for index, number in enumerate(_METRICS):
            self._nvml.check(f"GPM metric {number}", asked.metrics[index].result)
        return tuple(asked.metrics[index].value for index in range(len(_METRICS)))


class Nvml:
    """The driver's library. Raises GpmError where there is none, or none with GPM."""

    def __init__(self, library: str = LIBRARY) -> None:
        try:
            self._library = CDLL(library)
        except OSError as error:
            raise GpmError(f"{library} cannot be loaded: {error}") from error
        self.call("nvmlInit_v2")

    def gpus(self) -> list[Gpu]:
        """All GPUs that the container sees."""
        count = c_uint()
        self.call("nvmlDeviceGetCount_v2", byref(count))
        found = []
        for index in range(count.value):
            handle = c_void_p()
            self.call("nvmlDeviceGetHandleByIndex_v2", c_uint(index), byref(handle))
            found.append(Gpu(self, handle))
        if not found:
            raise GpmError("NVML sees no GPU here")
        return found

    def uuid(self, handle: c_void_p) -> str:
        """The GPU's UUID."""
        text = create_string_buffer(_UUID_BYTES)
        self.call("nvmlDeviceGetUUID", handle, text, c_uint(_UUID_BYTES))
        return text.value.decode("ascii", "replace")

    def new_sample(self) -> c_void_p:
        """A buffer for a sample."""
        sample = c_void_p()
        self.call("nvmlGpmSampleAlloc", byref(sample))
        return sample

    def call(self, name: str, *arguments: Any) -> None:
        """Call a function of the library. Raises GpmError unless it succeeds."""
        function = getattr(self._library, name, None)
        if function is None:
            raise GpmError(f"{LIBRARY} has no {name}: the driver is older than 525")
        function.restype = c_uint
        self.check(name, function(*arguments))

    def check(self, what: str, result: int) -> None:
        """Raises GpmError unless the result is NVML_SUCCESS."""
        if result == 0:
            return
        describe = self._library.nvmlErrorString
        describe.restype, describe.argtypes = c_char_p, (c_uint,)
        said = describe(result) or b""
        raise GpmError(f"{what}: NVML error {result}, {said.decode('ascii', 'replace')}")


def main(argv: Sequence[str] | None = None) -> int:
    """Print lines until nobody reads them."""
    parser = argparse.ArgumentParser(prog="synergy_profiler.counters.nvml", description="NVML's GPM metrics.")
    parser.add_argument("--every-ms", type=int, default=500, metavar="MS")
    given = parser.parse_args(argv)
    try:
        gpus = Nvml().gpus()
        while True:
            time.sleep(given.every_ms / 1000)
            for gpu in gpus:
                sys.stdout.write(", ".join([gpu.uuid, *(f"{value:.4f}" for value in gpu.percents())]) + "\n")
            sys.stdout.flush()
    except GpmError as error:
        sys.stdout.write(f"{PROBLEM}{error}\n")
        return 1
    except BrokenPipeError:
        return 0


if __name__ == "__main__":
    sys.exit(main())
