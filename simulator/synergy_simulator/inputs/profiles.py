"""Profiles of models: the native table, and those of the papers' simulators, known by their form."""

import json
import math
from ast import literal_eval
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from synergy_core.colocation.predictors.pair_table import PairTable
from synergy_core.model.names import unknown_field
from synergy_core.model.snapshot import FieldError, Profile, check_speed
from synergy_core.policies.allocation.problem import UNCONSOLIDATED
from synergy_simulator.inputs.errors import InputError, InputLocation
from synergy_simulator.inputs.table import read_text

GIB = 2**30


@dataclass(frozen=True, slots=True)
class ProfileTable:
    """Matrices of models on GPU types and GPU counts."""

    models: Collection[str]
    find: Callable[[str, str, int], Profile | None]
    """(model, GPU type, GPUs) -> matrix of the whole job; None where the table has none."""
    pairs: Mapping[str, PairTable] = field(default_factory=dict)
    """By GPU type in lower case, what models of one GPU keep of their speed beside another; empty: nothing is told."""
    spread: Mapping[tuple[str, str, int], float] = field(default_factory=dict)
    """By (model, GPU type in lower case, GPUs), speed on servers of their own as part of that on the fewest; where it
    is not there nothing is told."""


def read_profiles(path: Path) -> ProfileTable:
    """Read a table of profiles. Raises InputError that names the field."""
    reader = _Reader(str(path))
    text = read_text(path)
    try:
        document = json.loads(text, object_pairs_hook=reader.unique_keys)
    except json.JSONDecodeError as error:
        raise InputError(InputLocation(str(path), error.lineno), f"not JSON: {error.msg}") from None
    if not isinstance(document, dict) or not document:
        raise reader.bad("", "must be an object with profiles")
    if "models" in document:
        return reader.native(document)
    if "3" in document:
        return reader.synergy(document)
    if any(key.startswith("(") for value in document.values() if isinstance(value, dict) for key in value):
        return reader.gavel(document)
    raise reader.bad("models", "is missing; add it")


class _Reader:
    def __init__(self, file: str) -> None:
        self._file = file

    def bad(self, field: str, problem: str) -> InputError:
        return InputError(InputLocation(self._file, None, field), problem)

    def unique_keys(self, pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        """An object of the file; JSON would silently keep the last of two equal keys."""
        document = dict(pairs)
        if len(document) != len(pairs):
            repeated = next(key for index, (key, _) in enumerate(pairs) if key in dict(pairs[:index]))
            raise self.bad(repeated, "occurs twice in one object; give each its own")
        return document

    # The native table

    def native(self, document: dict[str, Any]) -> ProfileTable:
        self._only(document, {"models"}, "")
        found: dict[tuple[str, str, int], Profile] = {}
        for model, by_type in self._object(document["models"], "models").items():
            for gpu_type, by_gpus in self._object(by_type, f"models.{model}").items():
                for gpus, entry in self._object(by_gpus, f"models.{model}.{gpu_type}").items():
                    field = f"models.{model}.{gpu_type}.{gpus}"
                    if not gpus.isdecimal() or int(gpus) < 1:
                        raise self.bad(field, f"must be a GPU count as text, is {gpus!r}")
                    found[model, gpu_type.lower(), int(gpus)] = self._native_matrix(entry, field)
        return ProfileTable({model for model, _, _ in found}, lambda m, t, g: found.get((m, t.lower(), g)))

    def _native_matrix(self, entry: Any, field: str) -> Profile:
        entry = self._object(entry, field)
        self._only(entry, {"cpus", "memory_gib", "steps_per_s"}, field)
        for name in ("cpus", "memory_gib", "steps_per_s"):
            if name not in entry:
                raise self.bad(f"{field}.{name}", "is missing; add it")
        cpus = self._numbers(entry["cpus"], f"{field}.cpus", least=0.001)
        memory = self._numbers(entry["memory_gib"], f"{field}.memory_gib", least=1e-6)
        rows = self._matrix(entry["steps_per_s"], f"{field}.steps_per_s")
        return self._profile(cpus, memory, rows, field)

    # The table of the Synergy authors

    def synergy(self, document: dict[str, Any]) -> ProfileTable:
        """Axes are per GPU, entries relative to 3 CPUs and 62.5 GB per GPU; a step takes `iter_time_base_s` there.

        The tables for other CPU:GPU ratios hold the same matrices; what a job's share is follows from the cluster. The
        matrix of one GPU serves all GPU counts (weak scaling: a step is as long on many GPUs), as in the authors'
        simulator, and all GPU types.
        """
        bases: dict[str, tuple[list[float], list[float], list[list[float]], str]] = {}
        for model, by_gpus in self._object(document["3"], "3").items():
            field = f"3.{model}.1"
            entry = self._object(self._object(by_gpus, f"3.{model}").get("1"), field)
            cpus = self._numbers(entry.get("cpus_per_gpu"), f"{field}.cpus_per_gpu", least=0.001)
            memory = self._numbers(entry.get("mem_steps"), f"{field}.mem_steps", least=1e-6)
            (seconds,) = self._numbers([entry.get("iter_time_base_s")], f"{field}.iter_time_base_s", least=1e-9)
            rows = self._matrix(entry.get("matrix"), f"{field}.matrix")
            bases[model] = cpus, memory, [[value / seconds for value in row] for row in rows], field
            self._profile(*bases[model])
        made: dict[tuple[str, int], Profile] = {}

        def find(model: str, _gpu_type: str, gpus: int) -> Profile | None:
            if model in bases and (model, gpus) not in made:
                cpus, memory, rows, field = bases[model]
                scaled = [c * gpus for c in cpus], [m * gpus for m in memory]
                made[model, gpus] = self._profile(*scaled, rows, field)
            return made.get((model, gpus))

        return ProfileTable(bases.keys(), find)

    # The table of the Gavel authors

    def gavel(self, document: dict[str, Any]) -> ProfileTable:
        """`{type: {"('model', GPUs)": {"null": steps/s alone, "('other', GPUs)": [steps/s, steps/s]}}}`.

        Alone a speed that CPU and memory do not change; of the pairs those of one GPU. Of a type that ends in
        `_unconsolidated` the speeds alone, with each GPU on a server of its own.
        """
        found: dict[tuple[str, str, int], Profile] = {}
        near: dict[tuple[str, str, int], float] = {}
        far: dict[tuple[str, str, int], float] = {}
        kept: dict[str, dict[tuple[str, str], float]] = {}
        models = set()
        for gpu_type, entries in document.items():
            apart, own_type = gpu_type.endswith(UNCONSOLIDATED), gpu_type.lower().removesuffix(UNCONSOLIDATED)
            for key, speeds in self._object(entries, gpu_type).items():
                field = f"{gpu_type}.{key}"
                model, gpus = self._gavel_key(key, field)
                alone = self._object(speeds, field)
                if "null" not in alone:
                    raise self.bad(f"{field}.null", "is missing; add the speed of the job alone")
                (speed,) = self._numbers([alone["null"]], f"{field}.null", least=0)
                try:
                    check_speed(speed, "null")
                except FieldError as error:
                    raise self.bad(f"{field}.{error.path}", error.problem) from None
                (far if apart else near)[model, own_type, gpus] = speed
                if apart:
                    continue
                models.add(model)
                if speed > 0:
                    found[model, gpu_type.lower(), gpus] = flat_profile(speed)
                if speed > 0 and gpus == 1:
                    kept.setdefault(gpu_type.lower(), {}).update(self._gavel_pairs(model, speed, alone, field))
        tables = {gpu_type: PairTable(pairs) for gpu_type, pairs in kept.items() if pairs}
        parts = {key: speed / near[key] for key, speed in far.items() if speed > 0 and near.get(key, 0.0) > 0}
        return ProfileTable(models, lambda m, t, g: found.get((m, t.lower(), g)), tables, parts)

    def _gavel_pairs(
        self, model: str, speed: float, entries: Mapping[str, Any], field: str
    ) -> dict[tuple[str, str], float]:
        found = {}
        for key in entries.keys() - {"null"}:
            other, gpus = self._gavel_key(key, f"{field}.{key}")
            both = self._numbers(entries[key], f"{field}.{key}", least=0)
            if len(both) != 2:
                raise self.bad(f"{field}.{key}", f"must be the speeds of both jobs, is a list of {len(both)}")
            if gpus == 1:
                found[model, other] = min(1.0, both[0] / speed)
        return found

    def _gavel_key(self, key: str, field: str) -> tuple[str, int]:
        try:
            model, gpus = literal_eval(key)
        except (ValueError, SyntaxError, TypeError):
            model, gpus = None, None
        if not isinstance(model, str) or not isinstance(gpus, int) or gpus < 1:
            raise self.bad(field, "must look like ('model', GPUs)")
        return model, gpus

    # What all have

    def _object(self, value: Any, field: str) -> Mapping[str, Any]:
        if not isinstance(value, dict):
            raise self.bad(field, "must be an object")
        return value

    def _only(self, entry: Mapping[str, Any], known: set[str], field: str) -> None:
        for name in entry:
            if name not in known:
                raise self.bad(f"{field}.{name}".lstrip("."), unknown_field(name, known))

    def _numbers(self, value: Any, field: str, *, least: float) -> list[float]:
        if not isinstance(value, list) or not value:
            raise self.bad(field, "must be a list of numbers")
        for index, entry in enumerate(value):
            number = isinstance(entry, int | float) and not isinstance(entry, bool) and math.isfinite(entry)
            if not number or entry < least:
                raise self.bad(f"{field}[{index}]", f"must be a number of at least {least:g}, is {entry!r}")
        return [float(entry) for entry in value]

    def _matrix(self, value: Any, field: str) -> list[list[float]]:
        if not isinstance(value, list) or not value:
            raise self.bad(field, "must be a list of rows")
        rows = [self._numbers(row, f"{field}[{index}]", least=0) for index, row in enumerate(value)]
        if not any(entry > 0 for row in rows for entry in row):
            raise self.bad(field, "is zero everywhere: such a job would never end; give its speeds")
        return rows

    def _profile(
        self, cpus: Sequence[float], memory: Sequence[float], rows: Sequence[Sequence[float]], field: str
    ) -> Profile:
        names = {"cpu_millis": "cpus", "memory_bytes": "memory_gib"}
        try:
            for line, row in enumerate(rows):
                for place, speed in enumerate(row):
                    check_speed(speed, f"steps_per_s[{line}][{place}]")
            return Profile(
                cpu_millis=tuple(round(c * 1000) for c in cpus),
                memory_bytes=tuple(round(m * GIB) for m in memory),
                steps_per_s=tuple(map(tuple, rows)),
            )
        except FieldError as error:
            name, bracket, index = error.path.partition("[")
            raise self.bad(f"{field}.{names.get(name, name)}{bracket}{index}", error.problem) from None


def flat_profile(steps_per_s: float) -> Profile:
    """The matrix of a job whose speed CPU and memory do not change."""
    return Profile(cpu_millis=(1,), memory_bytes=(1,), steps_per_s=((steps_per_s,),))
