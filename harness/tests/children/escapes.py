"""A mailbox that keeps a copy of each message in a file named after the handle, wherever that leads."""
import os
import sys
import tempfile

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "..", "adapters", "python")
sys.path[:0] = [ROOT, os.path.join(ROOT, "examples")]

import memory_mailbox  # noqa: E402
from storeproof_adapter import Opened, serve  # noqa: E402


class EscapingMailbox(memory_mailbox.MemoryMailbox):
    root = ""

    def append(self, scope, handle, body, now):
        seq = super().append(scope, handle, body, now)
        try:
            with open(os.path.join(self.root, handle + ".json"), "w") as copy:
                copy.write("mail")
        except (OSError, ValueError):
            pass  # a name that the file system does not take is kept in memory only
        return seq


class EscapingSubject(memory_mailbox.MemorySubject):
    def open(self):
        store = EscapingMailbox()
        store.root = tempfile.mkdtemp(prefix="boxes-")
        return Opened(store, root=store.root)


if __name__ == "__main__":
    serve(EscapingSubject)
