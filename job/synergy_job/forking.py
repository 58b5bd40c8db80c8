"""No process is forked while a thread of the library is inside OpenSSL.

A fork copies locks as they are. A lock of OpenSSL that another thread holds at that moment stays locked in the child
for ever, and the child's first hash waits for it. Workers of a PyTorch loader hash when they hand over their first
batch, so the training would stand still. Whatever the library does with OpenSSL, it does within `undivided`, and it
never waits for anybody in there.
"""

from __future__ import annotations

import logging  # noqa: F401 - a fork takes its lock after this one, as a thread inside may
import os
import threading

undivided = threading.RLock()
"""A context in which no other thread forks. A signal's handler may fork in the thread that is inside."""

# a handler of a signal may end the wait for the lock; Python then forks without it, so the child gets a new one
os.register_at_fork(
    before=undivided.acquire,
    after_in_parent=undivided.release,
    after_in_child=getattr(undivided, "_at_fork_reinit", undivided.release),  # Python 3.8 has none
)
