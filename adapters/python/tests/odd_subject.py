"""A subject that does what authors do wrong, one body at a time, and serves registered methods."""

from __future__ import annotations

import ctypes
import os
import subprocess
import sys
import threading
import time
from typing import Any

import client  # noqa: F401  (puts the SDK on the path)

from storeproof_adapter import (
    Capabilities, Claim, Json, Limits, Mailbox, Message, Opened, Refused, Subject, method, serve,
)

print("a banner before serve")


class OddMailbox(Mailbox):
    """`append` does what its body names. `claim` and `peek` give back what was set last."""

    def __init__(self) -> None:
        self.given: Any = None
        self.closes = 0

    def append(self, scope: str, handle: str, body: Json, now: int) -> Any:
        if isinstance(body, dict) and "refuse" in body:
            raise Refused(body["refuse"], body.get("message", ""), **body.get("data", {}))
        if body == "print":
            print("from print, \u2028 and \udc80")
            assert sys.__stdout__ is not None
            sys.__stdout__.write("from the first stdout\n")
            os.write(1, b"from descriptor 1\n")
            libc = ctypes.CDLL(None)
            libc.puts(b"from C")
            libc.fflush(None)
            subprocess.run(["echo", "from a child process"], check=True)
        elif body == "read stdin":
            eaten = subprocess.run(["cat"], capture_output=True, check=True).stdout
            return len(sys.stdin.read()) + len(eaten) + 1
        elif body == "raise":
            raise ValueError("the disk \udc80 is on fire")
        elif body == "exit":
            sys.exit(7)
        elif body == "unprintable":
            raise Unprintable
        elif body == "none":
            return None
        elif body == "true":
            return True
        elif body == "meet":
            MEETING.wait(timeout=5)  # Passes only when four calls are under way at once.
            time.sleep(0.2)
        return 1

    def claim(self, *_: Any) -> Any:
        return ANSWERS.get(self.given, Claim("l", [Message(1, self.given)]))

    def renew(self, *_: Any) -> Any:
        return False

    def drop(self, scope: str, handle: str, now: int) -> Any:
        self.given = handle
        return 0

    def close(self) -> None:
        self.closes += 1
        if self.given == "close once" and self.closes > 1:
            raise OSError("bad file descriptor")

    def reap(self, now: int) -> None:
        if self.closes:
            raise OSError("bad file descriptor")


class Unprintable(Exception):
    def __str__(self) -> str:
        raise RuntimeError("no words")


MEETING = threading.Barrier(4)

ANSWERS: dict[str, Any] = {
    "nan": Claim("l", [Message(1, float("nan"))]),
    "infinity": Claim("l", [Message(1, [float("inf")])]),
    "surrogate": Claim("l", [Message(1, "\ud800")]),
    "bytes": Claim("l", [Message(1, b"x")]),
    "empty": Claim("l", []),
    "null": None,
    "numbers": Claim("", [Message(0, 1), Message(-7, 2), Message(1.5, 3)]),  # type: ignore[arg-type]
    "list": ["l", [1, "x"]],
    "dicts": Claim("l", [{"seq": 1, "body": 2}]),  # type: ignore[list-item]
    "false": False,
}


UNWRITABLE: dict[str, Any] = {"nan": {"answer": float("nan")}, "list": [], "bare": {"row": 1}}


class OddSubject(Subject):
    name = "odd"
    version = "0.1"
    homepage = "https://example.org/odd"
    capabilities = Capabilities(
        mailbox=True, peek=True, renew=True, concurrent=True, clock="caller", memory=True,
        bundle=["bundle/hash"],
    )
    limits = Limits(lease_granularity_ms=5)
    faces = [{"name": "notes", "kind": "list", "reopen": True}]
    server = {"restart": "true"}

    def __init__(self) -> None:
        self.entries: list[Json] = []

    def open(self) -> Opened:
        return Opened(OddMailbox(), location={"n": [1]}, root="/nowhere")

    def shutdown(self) -> None:
        print("shut down")

    @method("memory/put")
    def put(self, params: dict[str, Json]) -> Json:
        self.entries.append((type(self.store(params)).__name__, params["entry"]))
        return {}

    @method("memory/list")
    def entries_of(self, params: dict[str, Json]) -> Json:
        return {"entries": self.entries}

    @method("memory/delete")
    def delete(self, params: dict[str, Json]) -> Json:
        return {"nothing": None, "list": []}[params["id"]]

    @method("bundle/hash", "bundle/validate")
    def hash(self, params: dict[str, Json]) -> Json:
        return {"hash": "00"}

    @method("rules/constants")
    def constants(self, params: dict[str, Json]) -> Json:
        return {}

    @method("face/read", "face/seed", "face/reopen", "face/open")
    def face(self, params: dict[str, Json]) -> Json:
        if params["subject"] == "refusing":
            raise Refused("corrupt", "line 3")
        if params["subject"] == "exit":
            sys.exit("torn")
        if params["subject"] in UNWRITABLE:
            return UNWRITABLE[params["subject"]]
        raise KeyError("torn")


if __name__ == "__main__":
    serve(OddSubject, threads=int(sys.argv[1]) if len(sys.argv) > 1 else 1)
