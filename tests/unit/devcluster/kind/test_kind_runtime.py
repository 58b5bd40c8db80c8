"""runc for machines that lack capabilities."""

import json
import os
import subprocess
from pathlib import Path

import pytest

from synergy_devcluster.kind import runtime

WITHOUT_SYS_RESOURCE = "Name:\tx\nCapBnd:\t000001fffeffffff\n"
ALL = "CapBnd:\t000001ffffffffff\n"


def test_capabilities_are_read_from_the_bounding_set() -> None:
    lacking = runtime.allowed(ALL) - runtime.allowed(WITHOUT_SYS_RESOURCE)
    assert lacking == {"CAP_SYS_RESOURCE"}
    assert len(runtime.allowed(ALL)) == 41
    assert runtime.allowed("CapBnd:\t0000000000000001\n") == {"CAP_CHOWN"}


def test_a_process_keeps_only_what_the_machine_has() -> None:
    process = {
        "capabilities": {"bounding": ["CAP_CHOWN", "CAP_SYS_RESOURCE"], "effective": ["CAP_SYS_RESOURCE"]},
        "oomScoreAdj": -999,
        "rlimits": [{"type": "RLIMIT_NOFILE"}],
        "args": ["sh"],
    }
    runtime.trim(process, {"CAP_CHOWN"})
    assert process == {"capabilities": {"bounding": ["CAP_CHOWN"], "effective": []}, "args": ["sh"]}


def test_a_process_loses_nothing_where_nothing_is_lacking() -> None:
    process = {"capabilities": {"bounding": ["CAP_SYS_RESOURCE"]}, "oomScoreAdj": -999, "rlimits": []}
    before = json.loads(json.dumps(process))
    runtime.trim(process, runtime.allowed(ALL))
    assert process == before


@pytest.mark.parametrize("words", [["create", "--bundle", "BUNDLE", "name"], ["exec", "--process", "FILE", "name"]])
def test_it_becomes_runc_with_the_same_words(tmp_path: Path, words: list[str]) -> None:
    runc = tmp_path / "runc"
    runc.write_text('#!/bin/sh\necho "$*"\n')
    runc.chmod(0o755)
    process = {"capabilities": {"bounding": ["CAP_CHOWN", "CAP_NOT_KNOWN"]}}
    (tmp_path / "config.json").write_text(json.dumps({"process": process}))
    (tmp_path / "process.json").write_text(json.dumps(process))
    given = [{"BUNDLE": str(tmp_path), "FILE": str(tmp_path / "process.json")}.get(word, word) for word in words]
    done = subprocess.run(
        ["python3", "-IS", runtime.__file__, *given],
        env={**os.environ, "PATH": f"{tmp_path}:{os.environ['PATH']}"},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.strip() == " ".join(given)
    bundle = json.loads((tmp_path / "config.json").read_text())["process"]
    alone = json.loads((tmp_path / "process.json").read_text())
    changed = bundle if "--bundle" in words else alone
    assert "CAP_NOT_KNOWN" not in changed["capabilities"]["bounding"]
    assert "CAP_NOT_KNOWN" in (alone if "--bundle" in words else bundle)["capabilities"]["bounding"]
