"""Which licence a part of an image is under, from what it says of itself. Empty where it does not say."""

import re
import subprocess
from email.message import Message
from functools import cache
from pathlib import Path

_CLASSIFIER = "License :: OSI Approved :: "
_PHRASES = (
    ("LGPL-2.1-or-later", "GNU Lesser General Public License, version 2.1 (or, at your option, any later version)"),
    ("PSF-2.0", "Python Software Foundation License Version 2"),
    ("Apache-2.0", "Apache License"),
    ("MPL-2.0", "Mozilla Public License Version 2.0"),
    ("MIT", "Permission is hereby granted, free of charge"),
    ("BSD-3-Clause", "Neither the name"),
    ("BSD-2-Clause", "Redistribution and use in source and binary forms"),
    ("ISC", "Permission to use, copy, modify, and/or distribute this software for any purpose"),
)
"""Words that a licence's text has and those before it in this list do not. BSD's third clause has several wordings."""


def python_licence(fields: Message) -> str:
    """Of an installed distribution: its SPDX expression, else its classifiers, else the first line it gives."""
    expression = fields.get("License-Expression")
    if expression:
        return str(expression)
    classifiers = [line for line in fields.get_all("Classifier") or [] if line.startswith(_CLASSIFIER)]
    if classifiers:
        return " AND ".join(sorted({line.removeprefix(_CLASSIFIER) for line in classifiers}))
    return str(fields.get("License") or "").strip().partition("\n")[0]


def debian_licences(text: str) -> str:
    """All licences that a Debian copyright file names; of one in free prose, those whose common text it refers to."""
    named = re.findall(r"^License:[ \t]*(\S.*)$", text, re.MULTILINE)
    if not named:
        named = re.findall(r"/usr/share/common-licenses/([A-Za-z0-9.+-]+[A-Za-z0-9])", text)
    return ", ".join(sorted({name.strip() for name in named})) or licence_of_text(text)


def go_licence(module: str, version: str) -> str:
    """Of a module in Go's module cache, where the program was built on this machine."""
    folder = _module_cache() / f"{_escaped(module)}@{_escaped(version)}"
    texts = [file for file in sorted(folder.glob("*")) if re.match(r"(?i)(licen[cs]e|copying)", file.name)]
    found = {licence_of_text(file.read_text(encoding="utf-8", errors="replace")) for file in texts if file.is_file()}
    return " AND ".join(sorted(found - {""}))


def licence_of_text(text: str) -> str:
    """The SPDX identifier of a licence's text."""
    flat = " ".join(text.split())
    return next((name for name, phrase in _PHRASES if phrase.lower() in flat.lower()), "")


def _escaped(path: str) -> str:
    """As the module cache writes it: a capital letter is an exclamation mark and the small letter."""
    return re.sub(r"[A-Z]", lambda letter: "!" + letter.group().lower(), path)


@cache
def _module_cache() -> Path:
    told = subprocess.run(["go", "env", "GOMODCACHE"], capture_output=True, text=True, check=True)
    return Path(told.stdout.strip())
