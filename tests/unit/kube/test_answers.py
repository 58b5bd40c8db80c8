"""Texts that come in pieces, and pages of collections."""

from collections.abc import AsyncIterator

import pytest

from synergy_kube.answers import Page, lines_of


async def pieces(*chunks: bytes) -> AsyncIterator[bytes]:
    for chunk in chunks:
        yield chunk


@pytest.mark.parametrize(
    ("chunks", "lines"),
    [
        ((), []),
        ((b"a\nb",), [b"a", b"b"]),
        ((b"a", b"b\n", b"\nc\n"), [b"ab", b"", b"c"]),
        ((b"x" * 70_000,) * 5, [b"x" * 350_000]),
    ],
)
async def test_lines_are_whole_however_they_come(chunks: tuple[bytes, ...], lines: list[bytes]) -> None:
    assert [line async for line in lines_of(pieces(*chunks))] == lines


def test_a_list_of_metadata_may_have_null_in_place_of_no_items() -> None:
    page = Page(b'{"kind": "PartialObjectMetadataList", "metadata": {"resourceVersion": "7"}, "items": null}')
    assert (page.version, len(page), list(page.versions())) == ("7", 0, [])


def test_versions_are_told_by_namespace_and_name() -> None:
    items = (
        b'{"metadata": {"name": "a", "namespace": "team", "resourceVersion": "3", "labels": {}}},'
        b'{"metadata": {"name": "n1", "resourceVersion": "4"}, "spec": {}}'
    )
    page = Page(b'{"metadata": {"resourceVersion": "7"}, "items": [' + items + b"]}")
    assert dict(page.versions()) == {("team", "a"): "3", ("", "n1"): "4"}
