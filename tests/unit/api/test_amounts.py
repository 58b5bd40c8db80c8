"""The vector of resources and its dimensions."""

import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from synergy_api.amounts import DIMENSIONS, NOTHING, Amounts
from synergy_api.parts.allocation import NodeShare

ROOT = Path(__file__).parents[3]
FIELDS = tuple(one.field for one in DIMENSIONS)

NAMES_THEM = {
    "api/synergy_api/amounts.py": "the list of dimensions",
    "api/synergy_api/quantity.py": "parses the quantity",
    "api/synergy_api/parts/allocation.py": "field of the custom resource",
    "api/synergy_api/parts/profile.py": "axes of the sensitivity matrix",
    "api/synergy_api/parts/sizes.py": "field of the custom resource",
    "api/synergy_api/parts/service.py": "field of the custom resource",
    "api/synergy_api/parts/usage.py": "GPU memory",
    "operator/synergy_operator/job/events.py": "the CPU of a profile's point",
    "operator/synergy_operator/pods/cache_share.py": "the data cache takes memory",
    "operator/synergy_operator/pods/template.py": "/dev/shm is memory",
    "operator/synergy_operator/profile/": "profiling searches CPU and models memory",
    "operator/synergy_operator/run/outcome.py": "a container that was killed for its memory",
    "operator/synergy_operator/run/resize.py": "the kubelet shrinks memory last",
    "operator/synergy_operator/run/size_limits.py": "memory that is in use cannot be taken back",
    "operator/synergy_operator/views/batch_job.py": "the CPU of a profile's point",
    "extender/synergy_extender/cluster/quota_views.py": "which quota counts what",
    "extender/synergy_extender/cluster/views.py": "axes of the sensitivity matrix",
    "extender/synergy_extender/colocation/measured.py": "axes of the sensitivity matrix",
    "extender/synergy_extender/colocation/usages.py": "GPU memory",
    "extender/synergy_extender/decisions/summary.py": "texts for people",
    "extender/synergy_extender/leases/verdict.py": "field of the answer to a worker",
    "extender/synergy_extender/snapshot/planned_jobs.py": "memory of a profile beside foreign pods",
    "extender/synergy_extender/verbs/bind.py": "units for people",
    "extender/synergy_extender/web/api_app.py": "field of the answer to a worker",
}
"""Files of the operator, the extender and the api that name a dimension, and what for. All others treat them alike."""

amounts = st.builds(Amounts, *(st.integers(0, 10**12) for _ in Amounts._fields))


def test_the_fields_are_gpus_and_the_dimensions_in_order() -> None:
    assert Amounts._fields == ("gpus", *FIELDS)


def test_a_resource_list_is_parsed_and_written_by_dimension() -> None:
    found = Amounts.parse({"cpu": "1500m", "memory": "2Gi", "nvidia.com/gpu": "3", "example.com/other": "7"})
    assert found == Amounts(3, 1500, 2 << 30)
    assert found.quantities == {"cpu": "1500m", "memory": "2Gi"}
    assert Amounts.parse({}) == NOTHING
    with pytest.raises(ValueError, match="'much'"):
        Amounts.parse({"memory": "much"})


@given(amounts)
def test_quantities_are_read_back_as_they_were(one: Amounts) -> None:
    assert Amounts.parse(one.quantities) == one.without_gpus()


@given(amounts, amounts, amounts)
def test_sums_bounds_and_fits_agree(one: Amounts, other: Amounts, third: Amounts) -> None:
    assert one.plus(other).minus(other) == one
    assert one.plus(other).plus(third) == one.plus(other.plus(third))
    assert one.at_most(other).fits(one)
    assert one.fits(one.at_least(other))
    assert one.fits(other) == (one.at_most(other) == one)


@given(amounts, st.integers(1, 16), st.data())
def test_parts_of_a_whole_add_up_to_it(one: Amounts, whole: int, data: st.DataObject) -> None:
    cut = data.draw(st.integers(0, whole))
    first, rest = one.part(cut, whole), one.minus(one.part(cut, whole))
    assert first.plus(rest)[1:] == one[1:]
    up = one.part(cut, whole, up=True)
    assert all(0 <= high - low <= 1 for high, low in zip(up.beside_gpus, first.beside_gpus, strict=True))
    assert one.part(whole, whole) == one


def test_an_object_with_the_fields_gives_its_amounts() -> None:
    share = NodeShare(node="n1", gpus=2, cpu_millis=500, memory_bytes=7)
    assert Amounts.of(share) == Amounts(2, 500, 7)
    assert Amounts.of(share, gpus=4).gpus == 4
    assert share.model_copy(update=Amounts(9, 1, 2).fields) == NodeShare(
        node="n1", gpus=2, cpu_millis=1, memory_bytes=2
    )


def test_a_field_of_zero_fits_an_overdrawn_room() -> None:
    assert Amounts(0, 1, 1).fits(Amounts(-1, 1, 1))
    assert not Amounts(1, 1, 1).fits(Amounts(-1, 1, 1))


def test_only_these_files_name_a_dimension() -> None:
    word = re.compile(rf"\b(?!gpu_|client_)\w*({'|'.join(FIELDS)})\b")
    naming = {
        str(path.relative_to(ROOT))
        for folder in ("api", "operator", "extender")
        for path in (ROOT / folder).rglob("*.py")
        if word.search(path.read_text())
    }
    allowed = {one for one in naming if any(one.startswith(known) for known in NAMES_THEM)}
    assert naming - allowed == set()
    assert {known for known in NAMES_THEM if not any(one.startswith(known) for one in naming)} == set()
