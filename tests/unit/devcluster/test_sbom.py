"""What is in an image, read from archives made here."""

import csv
import io
import json
import tarfile
from collections.abc import Mapping
from datetime import UTC, datetime
from email.parser import HeaderParser
from pathlib import Path

import pytest

from synergy_devcluster.images import licences, sbom
from synergy_devcluster.images.licences import debian_licences, go_licence, licence_of_text, python_licence
from synergy_devcluster.images.sbom import Part, go_parts, parts_of, write

DPKG = """Package: libc6
Status: install ok installed
Version: 2.36-9
Description: C library
 with a second line

Package: libgcc-s1
Version: 12.2
"""
COPYRIGHT = "Files: *\nLicense: GPL-3+\n\nFiles: x\nLicense: MIT\n"


def layer(files: Mapping[str, str], links: Mapping[str, str] = {}) -> bytes:
    data = io.BytesIO()
    with tarfile.open(fileobj=data, mode="w") as tar:
        for name, text in files.items():
            member = tarfile.TarInfo(name)
            member.size = len(text.encode())
            tar.addfile(member, io.BytesIO(text.encode()))
        for name, target in links.items():
            member = tarfile.TarInfo(name)
            member.type, member.linkname = tarfile.SYMTYPE, target
            tar.addfile(member)
    return data.getvalue()


def archive(file: Path, *layers: bytes) -> Path:
    manifest = json.dumps([{"Layers": [f"{number}.tar" for number in range(len(layers))]}]).encode()
    with tarfile.open(file, "w") as tar:
        for name, data in (("manifest.json", manifest), *((f"{n}.tar", data) for n, data in enumerate(layers))):
            member = tarfile.TarInfo(name)
            member.size = len(data)
            tar.addfile(member, io.BytesIO(data))
    return file


def metadata(name: str, version: str, more: str = "") -> str:
    return f"Metadata-Version: 2.4\nName: {name}\nVersion: {version}\n{more}\n"


BASE = layer(
    {"var/lib/dpkg/status": DPKG, "usr/share/doc/gcc-12-base/copyright": COPYRIGHT, "usr/bin/secret": "x"},
    {"usr/share/doc/libgcc-s1": "gcc-12-base"},
)
SITE = "opt/venv/lib/python3.11/site-packages"


def test_parts_are_debian_packages_and_python_distributions_of_all_layers(tmp_path: Path) -> None:
    python = layer({f"./{SITE}/one-1.dist-info/METADATA": metadata("one", "1", "License-Expression: MIT\n")})
    assert parts_of(archive(tmp_path / "image.tar", BASE, python)) == [
        Part("deb", "libc6", "2.36-9", ""),
        Part("deb", "libgcc-s1", "12.2", "GPL-3+, MIT"),
        Part("pypi", "one", "1", "MIT"),
    ]


def test_what_a_later_layer_removes_is_not_there(tmp_path: Path) -> None:
    one = layer({f"{SITE}/one-1.dist-info/METADATA": metadata("one", "1")})
    gone = layer({f"{SITE}/one-1.dist-info/.wh.METADATA": ""})
    assert parts_of(archive(tmp_path / "image.tar", one, gone)) == []


def test_modules_of_a_go_program_with_the_replacement_of_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sbom, "go_licence", lambda module, version: f"{module}@{version}")
    told = (
        "program: go1.26.8\n\tpath\tk8s.io/x\n\tmod\tk8s.io/x\tv1\n\tdep\ta.b/c\tv1.2.3\th1:x=\n"
        "\tdep\ta.b/d\tv1\n\t=>\ta.b/e\tv2\th1:y=\n\tbuild\t-trimpath=true\n"
    )
    assert go_parts(told) == [
        Part("golang", "stdlib", "1.26.8", "BSD-3-Clause"),
        Part("golang", "a.b/c", "v1.2.3", "a.b/c@v1.2.3"),
        Part("golang", "a.b/e", "v2", "a.b/e@v2"),
    ]


def test_the_document_is_cyclonedx_with_package_urls(tmp_path: Path) -> None:
    parts = [
        Part("deb", "libc6", "2.36-9", "GPL-3+, MIT"),
        Part("golang", "a.b/c", "v1", "MIT"),
        Part("pypi", "x", "1", ""),
    ]
    write(parts, "kube-synergy-operator", tmp_path / "x.json")
    document = json.loads((tmp_path / "x.json").read_text())
    assert (document["bomFormat"], document["metadata"]["component"]["name"]) == ("CycloneDX", "kube-synergy-operator")
    urls = {item["name"]: item["purl"] for item in document["components"]}
    assert urls == {"libc6": "pkg:deb/debian/libc6@2.36-9", "a.b/c": "pkg:golang/a.b/c@v1", "x": "pkg:pypi/x@1"}
    licensed = {item["name"]: item.get("licenses") for item in document["components"]}
    assert licensed["a.b/c"] == [{"license": {"id": "MIT"}}]
    assert licensed["x"] is None


def test_all_images_are_written_and_a_licence_that_is_not_known_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    image = archive(tmp_path / "image.tar", BASE)
    asked: list[str] = []

    def build(*, only: tuple[str, ...], report: object) -> dict[str, Path]:
        asked.extend(only)
        return {"localhost/kube-synergy-operator:dev": image}

    monkeypatch.setattr(sbom, "build_images", build)
    assert sbom.main(tmp_path / "out") == 1
    assert asked == ["operator", "extender", "dashboard", "profiler", "scheduler", "examples", "gpu-plugin"]
    assert "no licence known: pkg:deb/debian/libc6@2.36-9" in capsys.readouterr().out
    rows = list(csv.DictReader((tmp_path / "out" / "licences.csv").read_text().splitlines()))
    assert [(row["image"], row["name"]) for row in rows] == [
        ("kube-synergy-operator", "libc6"),
        ("kube-synergy-operator", "libgcc-s1"),
    ]
    assert (tmp_path / "out" / "kube-synergy-operator.cdx.json").is_file()


@pytest.mark.parametrize(
    ("more", "want"),
    [
        ("License-Expression: Apache-2.0\nLicense: other\n", "Apache-2.0"),
        ("Classifier: License :: OSI Approved :: MIT License\nLicense: whole text\n", "MIT License"),
        ("License: BSD\n and more\n", "BSD"),
        ("", ""),
    ],
)
def test_a_distributions_licence(more: str, want: str) -> None:
    assert python_licence(HeaderParser().parsestr(metadata("one", "1", more))) == want


@pytest.mark.parametrize(
    ("text", "want"),
    [
        (COPYRIGHT, "GPL-3+, MIT"),
        ("On Debian systems see /usr/share/common-licenses/LGPL-2.1.\n", "LGPL-2.1"),
        ("Permission is hereby granted,\nfree of charge, to any person", "MIT"),
        ("nothing", ""),
    ],
)
def test_a_debian_packages_licences(text: str, want: str) -> None:
    assert debian_licences(text) == want


def test_a_go_modules_licence_is_read_from_the_module_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(licences, "_module_cache", lambda: tmp_path)
    folder = tmp_path / "a.b" / "!big@v1"
    folder.mkdir(parents=True)
    (folder / "LICENSE").write_text("Apache License\nVersion 2.0")
    (folder / "LICENSE.more").write_text("Permission is hereby granted, free of charge")
    assert go_licence("a.b/Big", "v1") == "Apache-2.0 AND MIT"
    assert go_licence("a.b/none", "v1") == ""


def test_bsd_licences_are_told_apart() -> None:
    two = "Redistribution and use in source and binary forms, with or without"
    assert licence_of_text(two) == "BSD-2-Clause"
    assert licence_of_text(f"{two} ... Neither the name of Google") == "BSD-3-Clause"


def test_a_document_of_a_given_time_is_the_same_for_the_same_parts(tmp_path: Path) -> None:
    at = datetime(2026, 11, 23, tzinfo=UTC)
    files = [tmp_path / name for name in ("one", "two", "other")]
    for file, version in zip(files, ("1", "1", "2"), strict=True):
        write([Part("pypi", "a", version, "MIT")], "image:1", file, at)
    assert files[0].read_bytes() == files[1].read_bytes()
    documents = [json.loads(file.read_text()) for file in files]
    assert documents[0]["serialNumber"] != documents[2]["serialNumber"]
    assert documents[0]["metadata"]["timestamp"].startswith("2026-11-23T00:00:00")
