"""The harness of a profile run: measures how fast the user's own command trains under the CPU limit it runs in.

`python3 -m synergy_profiler --help`. Needs the standard library only (Python 3.8 or newer) and Linux.
"""
