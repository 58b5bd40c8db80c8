"""`make release`: one version everywhere, archives that come out the same each time, and what the folder has."""

import io
import json
import shutil
import subprocess
import tarfile
from pathlib import Path

import pytest
import yaml

from synergy_api.names import PRODUCT_VERSION
from synergy_devcluster.errors import BadInputError
from synergy_devcluster.images.project import SOURCE
from synergy_devcluster.release import __main__, make
from synergy_devcluster.release.archives import checksums, repacked, retagged
from synergy_devcluster.release.make import make_release, source_epoch
from synergy_devcluster.release.version import release_notes, release_version

NAMED = ("pyproject.toml", "helm/kube-synergy/Chart.yaml", "api/synergy_api/names.py", "CHANGELOG.md")
EPOCH = 1_700_000_000


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """A copy of the files that name the version."""
    for name in NAMED:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(SOURCE / name, tmp_path / name)
    return tmp_path


def tar(file: Path, members: dict[str, bytes], mtime: int) -> Path:
    with tarfile.open(file, "w") as archive:
        for name, data in members.items():
            member = tarfile.TarInfo(name)
            member.size, member.mtime, member.uname = len(data), mtime, "somebody"
            archive.addfile(member, io.BytesIO(data))
    return file


def test_the_project_s_own_files_agree_and_the_changelog_has_the_release() -> None:
    assert release_version(SOURCE) == PRODUCT_VERSION
    notes = release_notes(SOURCE, PRODUCT_VERSION)
    assert notes.startswith(f"## {PRODUCT_VERSION} - ")
    assert notes.count("\n## ") == 0


@pytest.mark.parametrize(
    ("file", "old", "new", "field"),
    [
        ("helm/kube-synergy/Chart.yaml", "\nversion: ", "\nversion: 9", "Chart.yaml: version is 9"),
        ("helm/kube-synergy/Chart.yaml", 'appVersion: "', 'appVersion: "9', "Chart.yaml: appVersion is 9"),
        (
            "api/synergy_api/names.py",
            'PRODUCT_VERSION: Final = "',
            'PRODUCT_VERSION: Final = "9',
            "PRODUCT_VERSION is 9",
        ),
    ],
)
def test_another_version_is_refused_with_file_and_field(tree: Path, file: str, old: str, new: str, field: str) -> None:
    (tree / file).write_text((tree / file).read_text().replace(old, new))
    with pytest.raises(BadInputError, match=f"{field}.*: write the same version in both"):
        release_version(tree)


@pytest.mark.parametrize("heading", ["", f"## {PRODUCT_VERSION}\n", "## 9.9.9 - 2026-11-23\n"])
def test_a_changelog_without_the_release_is_refused(tree: Path, heading: str) -> None:
    (tree / "CHANGELOG.md").write_text(f"# Changelog\n\n## Unreleased\n\n- x\n\n{heading}")
    with pytest.raises(BadInputError, match=f"no section '## {PRODUCT_VERSION} - YYYY-MM-DD': move"):
        release_notes(tree, PRODUCT_VERSION)


def test_files_bear_the_time_that_is_given_and_nonsense_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SOURCE_DATE_EPOCH", str(EPOCH))
    assert source_epoch(Path("/nowhere")) == EPOCH
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "yesterday")
    with pytest.raises(BadInputError, match="SOURCE_DATE_EPOCH: 'yesterday' is not a number"):
        source_epoch(SOURCE)


def test_without_a_time_the_tree_must_be_committed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SOURCE_DATE_EPOCH", raising=False)
    with pytest.raises(BadInputError, match="is no git checkout: set SOURCE_DATE_EPOCH"):
        source_epoch(tmp_path)
    git = ["git", "-C", str(tmp_path), "-c", "user.name=x", "-c", "user.email=x@example.com"]
    subprocess.run([*git, "init", "--quiet"], check=True)
    (tmp_path / "a").write_text("1")
    with pytest.raises(BadInputError, match="a is not committed: commit it"):
        source_epoch(tmp_path)
    subprocess.run([*git, "add", "a"], check=True)
    subprocess.run([*git, "commit", "--quiet", f"--date=@{EPOCH}", "-m", "a"], check=True)
    assert source_epoch(tmp_path) > EPOCH


def test_an_image_is_renamed_and_its_archive_depends_on_its_contents_only(tmp_path: Path) -> None:
    about = [{"Config": "c.json", "RepoTags": ["localhost/x:dev"], "Layers": ["l.tar"]}]
    members = {"l.tar": b"layer", "c.json": b"{}", "manifest.json": json.dumps(about).encode(), "repositories": b"{}"}
    packed = []
    for number in (1, 2):
        archive = tar(tmp_path / f"{number}.tar", members, mtime=number)
        packed.append(tmp_path / f"{number}.tar.gz")
        retagged(archive, packed[-1], "x:1.0", EPOCH)
    assert packed[0].read_bytes() == packed[1].read_bytes()
    with tarfile.open(packed[0]) as image:
        manifest = image.extractfile("manifest.json")
        assert manifest is not None
        assert json.load(manifest) == [{**about[0], "RepoTags": ["x:1.0"]}]
        assert set(image.getnames()) == members.keys() - {"repositories"}
        assert {member.mtime for member in image} == {EPOCH}


def test_a_repacked_archive_is_sorted_and_the_same_each_time(tmp_path: Path) -> None:
    one = tar(tmp_path / "1.tar", {"b": b"2", "a": b"1"}, mtime=1)
    other = tar(tmp_path / "2.tar", {"a": b"1", "b": b"2"}, mtime=2)
    for archive in (one, other):
        repacked(archive, archive.with_suffix(".tgz"), EPOCH)
    assert one.with_suffix(".tgz").read_bytes() == other.with_suffix(".tgz").read_bytes()


def test_checksums_are_what_sha256sum_checks(tmp_path: Path) -> None:
    files = [tmp_path / "b", tmp_path / "a"]
    for file in files:
        file.write_text(file.name)
    (tmp_path / "SHA256SUMS").write_text(checksums(files))
    subprocess.run(["sha256sum", "--check", "--quiet", "SHA256SUMS"], cwd=tmp_path, check=True)


@pytest.mark.timeout(1800)
def test_a_release_has_distributions_and_chart_of_its_version_twice_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SOURCE_DATE_EPOCH", str(EPOCH))
    made = [make_release(tmp_path / name, images=()) for name in ("one", "two")]
    assert [file.name for file in made[0]] == [
        f"kube-synergy-{PRODUCT_VERSION}-notes.md",
        f"kube_synergy-{PRODUCT_VERSION}-py3-none-any.whl",
        f"kube_synergy-{PRODUCT_VERSION}.tar.gz",
        f"kube-synergy-{PRODUCT_VERSION}.tgz",
        "SHA256SUMS",
    ]
    assert made[0][-1].read_bytes() == made[1][-1].read_bytes()
    subprocess.run(["sha256sum", "--check", "--quiet", "SHA256SUMS"], cwd=tmp_path / "one", check=True)
    with tarfile.open(made[0][3]) as chart:
        about = chart.extractfile("kube-synergy/Chart.yaml")
        assert about is not None
        assert yaml.safe_load(about)["version"] == PRODUCT_VERSION
        assert not [name for name in chart.getnames() if "values-" in name]


def test_the_command_says_what_to_change_on_one_line(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    assert __main__.main([]) == 2
    assert "usage:" in capsys.readouterr().err
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(make.EPOCH_VARIABLE, "soon")
        assert __main__.main([str(tmp_path)]) == 2
    assert capsys.readouterr().err.splitlines()[-1].startswith("error: SOURCE_DATE_EPOCH: 'soon'")


def test_every_image_of_the_project_but_the_scheduler_s_is_released() -> None:
    assert set(make.IMAGES) == {"operator", "extender", "dashboard", "profiler", "examples", "gpu-plugin"}
