"""A mailbox in a file: each change appends the whole state as one line. What it does with a last line
that is cut short is its argument: `mends` it, starts `empty`, `refuses` to open, or `glues` what comes
next to it."""
import base64
import os
import pickle
import sys
import tempfile

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "..", "adapters", "python")
sys.path[:0] = [ROOT, os.path.join(ROOT, "examples")]

import memory_mailbox  # noqa: E402
from storeproof_adapter import Capabilities, Opened, serve  # noqa: E402

HABIT = sys.argv[1]


def readable(line):
    try:
        pickle.loads(base64.b64decode(line, validate=True))
    except Exception:
        return False
    return True


class TornMailbox(memory_mailbox.MemoryMailbox):
    def __init__(self, path):
        super().__init__()
        self.path = path
        lines = open(path, "rb").read().split(b"\n")
        if lines[-1] and HABIT == "refuses":
            raise OSError("the last line is cut short")
        if lines[-1] and HABIT == "empty":
            return
        whole = [line for line in lines[:-1] if line]
        if HABIT == "glues":
            whole = [line for line in whole if readable(line)]
        if lines[-1] and HABIT != "glues":
            os.truncate(path, sum(len(line) + 1 for line in lines[:-1]))
        if whole:
            self._boxes = pickle.loads(base64.b64decode(whole[-1]))

    def _kept(self, answer):
        with open(self.path, "ab") as log:
            log.write(base64.b64encode(pickle.dumps(self._boxes)) + b"\n")
        return answer

    def append(self, scope, handle, body, now):
        return self._kept(super().append(scope, handle, body, now))

    def claim(self, *args, **kwargs):
        return self._kept(super().claim(*args, **kwargs))

    def ack(self, *args, **kwargs):
        return self._kept(super().ack(*args, **kwargs))

    def drop(self, *args, **kwargs):
        return self._kept(super().drop(*args, **kwargs))


class TornSubject(memory_mailbox.MemorySubject):
    name = "torn"
    capabilities = Capabilities(mailbox=True, durable=True, clock="caller")

    def open(self):
        root = tempfile.mkdtemp(prefix="torn-")
        path = os.path.join(root, "log")
        open(path, "xb").close()
        return Opened(TornMailbox(path), location={"path": path}, root=root)

    def attach(self, location):
        return TornMailbox(location["path"])


if __name__ == "__main__":
    serve(TornSubject)
