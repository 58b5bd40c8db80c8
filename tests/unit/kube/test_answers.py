"""Texts that come in pieces."""

from collections.abc import AsyncIterator

import pytest

from synergy_kube.answers import lines_of


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
