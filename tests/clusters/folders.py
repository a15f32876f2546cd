# SPDX-License-Identifier: Apache-2.0
"""Temporary folders. Those of a program that was killed are removed by a later program."""
import fcntl
import os
import pathlib
import shutil
import tempfile
import time

PREFIX = "gpups-test-"
OLD_S = 3600


def sweep():
    """Removes old folders whose owner has ended: a running owner holds a lock on its folder."""
    for path in pathlib.Path(tempfile.gettempdir()).glob(PREFIX + "*"):
        try:
            if time.time() - path.stat().st_mtime < OLD_S:
                continue  # may be new and not yet locked
            held = os.open(path, os.O_RDONLY)
        except OSError:
            continue  # another program has removed it, or another user owns it
        try:
            fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
            shutil.rmtree(path, ignore_errors=True)
        except OSError:
            pass  # in use
        finally:
            os.close(held)


class Temporary:
    """A folder that only this user may read. It exists until remove()."""

    def __init__(self, name):
        sweep()
        self.path = pathlib.Path(tempfile.mkdtemp(prefix=f"{PREFIX}{name}-"))
        self._held = os.open(self.path, os.O_RDONLY)
        fcntl.flock(self._held, fcntl.LOCK_EX)

    def remove(self):
        shutil.rmtree(self.path, ignore_errors=True)
        os.close(self._held)
