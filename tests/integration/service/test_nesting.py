"""What the API server may hold can be read."""

import subprocess
import sys

_READS = """
import json, sys, threading
import msgspec
from synergy_service.nesting import admit_deep_objects

def read():
    for text in ('{"a":' * 9999 + "1" + "}" * 9999, "[" * 9999 + "]" * 9999):
        assert msgspec.json.decode(text) == json.loads(text)

if sys.argv[1] == "admit":
    admit_deep_objects()
read()
thread = threading.Thread(target=read)
thread.start()
thread.join()
"""


def test_objects_as_deep_as_the_api_server_takes_them_are_read() -> None:
    for how, code in (("admit", 0), ("not", 1)):
        ran = subprocess.run([sys.executable, "-c", _READS, how], capture_output=True, text=True, check=False)
        assert ran.returncode == code, ran.stderr
        assert ("RecursionError" in ran.stderr) is (code == 1)
