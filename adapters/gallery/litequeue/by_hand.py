#!/usr/bin/env python3
"""Reproduces each failure of expect.toml on litequeue alone: no harness, no SDK, no adapter.

Prints what was done and what came back; exit 1 if one no longer reproduces, or if this file and
expect.toml name different clauses. Run it with `scripts/gallery certify litequeue`, or by itself:

    .gallery/litequeue/bin/python adapters/gallery/litequeue/by_hand.py
"""

from __future__ import annotations

import importlib.metadata
import json
import subprocess
import sys
import tempfile
import time
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

from litequeue import LiteQueue, MessageStatus

Show = Callable[[Path], bool]
SHOWN: dict[str, Show] = {}

# A second process: calls of its own LiteQueue, one a line.
PEER = """
import json, sys
from litequeue import LiteQueue
queue = LiteQueue(sys.argv[1])
for line in sys.stdin:
    method, *arguments = json.loads(line)
    answer = getattr(queue, method)(*arguments)
    print(json.dumps(getattr(answer, "message_id", answer)), flush=True)
"""


class Peer:
    def __init__(self, folder: Path, name: str) -> None:
        self._child = subprocess.Popen(
            [sys.executable, "-c", PEER, str(folder / f"{name}.db")],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
        )
        print(f"    another process opens queue {name!r}: pid {self._child.pid}")

    def call(self, who: str, method: str, *arguments: Any) -> Any:
        self._child.stdin.write(json.dumps([method, *arguments]) + "\n")
        self._child.stdin.flush()
        answer = json.loads(self._child.stdout.readline())
        return told(f"{who} there: {method}{arguments}", answer)

    def kill(self) -> None:
        self._child.kill()
        self._child.wait()
        print(f"    kill -9 {self._child.pid}")

    def __enter__(self) -> Peer:
        return self

    def __exit__(self, *_: object) -> None:
        self._child.kill()
        self._child.wait()
        self._child.stdin.close()
        self._child.stdout.close()


def shows(*clauses: str) -> Callable[[Show], Show]:
    def register(show: Show) -> Show:
        SHOWN.update((f"mailbox/{clause}", show) for clause in clauses)
        return show

    return register


def told(done: str, answer: Any) -> Any:
    """Prints one step and hands its answer on."""
    print(f"    {done}  ->  {answer!r}")
    return answer


def box(folder: Path, name: str, bodies: str) -> tuple[LiteQueue, list[str]]:
    """A queue in a file of its own, and the ids of what was put into it."""
    queue = LiteQueue(folder / f"{name}.db")
    ids = [queue.put(body).message_id for body in bodies.split()]
    told(f"queue {name!r}: put {bodies}, ids", ids)
    return queue, ids


def pop(queue: LiteQueue, who: str) -> str | None:
    popped = queue.pop()
    told(f"{who} claims: pop(), data", popped and popped.data)
    return popped and popped.message_id


def status(queue: LiteQueue, message_id: str) -> str:
    found = queue.get(message_id)
    return told(f"get: the status of {found.data}", MessageStatus(found.status).name)


def sweep(queue: LiteQueue, seconds: int) -> None:
    """What a caller of litequeue does about messages that were locked for too long."""
    locked = [message.message_id for message in queue.list_locked(seconds)]
    told(f"list_locked({seconds}) and retry of each", [queue.retry(one) for one in locked])


def wait(seconds: float) -> None:
    time.sleep(seconds)
    print(f"    {seconds} s pass")


@shows("core/claim-fences", "core/one-live-lease")
def claims_one(folder: Path) -> bool:
    queue, ids = box(folder, "alpha", "m1 m2 m3")
    held = [pop(queue, who) for who in ("ann", "bob", "ann, again,")]
    return held == ids and {status(queue, one) for one in ids} == {"LOCKED"}


@shows("core/append-under-lease", "core/lease-lives-to-expiry", "core/lease-from-claim")
def append_under_lease(folder: Path) -> bool:
    queue, [held] = box(folder, "alpha", "m1")
    first = pop(queue, "ann")
    late = queue.put("late").message_id
    told("put late, while ann's claim lives", late)
    sweep(queue, 3)
    return first == held and pop(queue, "bob") == late and status(queue, held) == "LOCKED"


@shows("core/handles-independent", "tenancy/drop-isolated")
def sibling(folder: Path) -> bool:
    mine, ids = box(folder, "a", "mine1 mine2")
    theirs, others = box(folder, "ab", "theirs1 theirs2")
    held = pop(mine, "ann")
    told("bob finishes his: done, of", theirs.done(pop(theirs, "bob")))
    delete = f"DELETE FROM {theirs.table}"
    told(f"the other file is emptied: {delete}, rows", theirs.conn.execute(delete).rowcount)
    return held == ids[0] and status(mine, held) == "LOCKED" and pop(mine, "cid") == ids[1]


@shows("core/reap-harmless", "tenancy/reap-isolated")
def reap_harmless(folder: Path) -> bool:
    queue, ids = box(folder, "alpha", "a1 a2 a3")
    held = pop(queue, "ann")
    sweep(queue, 3600)
    told("prune()", queue.prune())
    return held == ids[0] and status(queue, held) == "LOCKED" and pop(queue, "bob") == ids[1]


@shows("core/reopen")
def reopen(folder: Path) -> bool:
    queue, ids = box(folder, "alpha", "a1 a2")
    pop(queue, "ann")
    queue.close()
    print("    the queue is closed, and its file opened again")
    again = LiteQueue(folder / "alpha.db")
    return status(again, ids[0]) == "LOCKED" and pop(again, "bob") == ids[1]


@shows("core/invalid-input")
def invalid_input(folder: Path) -> bool:
    queue = LiteQueue(folder / "nameless.db", queue_name="")
    told("LiteQueue(queue_name=''): put m1", queue.put("m1").message_id)
    popped = pop(queue, "ann")
    for seconds in (0, -1):
        sweep(queue, seconds)
        pop(queue, f"bob, after a sweep of {seconds} s,")
    return popped is not None


@shows("core/release")
def release(folder: Path) -> bool:
    queue, [one] = box(folder, "alpha", "m1")
    pop(queue, "ann")
    told("bob, who holds nothing: retry of ann's message", queue.retry(one))
    freed = status(queue, one) == "READY" and pop(queue, "bob") == one
    told("bob: done", queue.done(one))
    told("ann, later: retry of her message, which was done", queue.retry(one))
    return freed and pop(queue, "cid") == one


@shows("ownership/foreign-ack")
def foreign_ack(folder: Path) -> bool:
    queue, [one] = box(folder, "alpha", "m1")
    pop(queue, "ann")
    told("bob: done of ann's message", queue.done(one))
    return status(queue, one) == "DONE"


@shows("ownership/stale-ack-after-reclaim")
def stale_ack_after_reclaim(folder: Path) -> bool:
    queue, [one] = box(folder, "alpha", "m1")
    pop(queue, "ann")
    wait(1.2)
    sweep(queue, 1)
    bobs = pop(queue, "bob")
    told("ann, whose claim timed out: done", queue.done(one))
    return bobs == one and status(queue, one) == "DONE"


@shows("ownership/stale-ack-unclaimed")
def stale_ack_unclaimed(folder: Path) -> bool:
    queue, [one] = box(folder, "alpha", "m1")
    pop(queue, "ann")
    wait(1.2)
    sweep(queue, 1)
    free = status(queue, one) == "READY"
    told("ann, whose claim timed out: done", queue.done(one))
    return free and status(queue, one) == "DONE" and pop(queue, "bob") is None


@shows("ownership/double-ack")
def double_ack(folder: Path) -> bool:
    queue, ids = box(folder, "alpha", "m1 n1 n2")
    told("ann: done", queue.done(pop(queue, "ann")))
    held = pop(queue, "ann")
    told("ann: done of m1 again, which changes nothing but its done_time", queue.done(ids[0]))
    return held == ids[1] and status(queue, held) == "LOCKED" and pop(queue, "bob") == ids[2]


@shows("ownership/wrong-box-ack", "tenancy/scopes-isolated")
def wrong_box_ack(folder: Path) -> bool:
    alpha, ids = box(folder, "alpha", "a1 a2")
    beta, _ = box(folder, "beta", "b1")
    held = pop(alpha, "ann")
    told("beta: done of ann's message, whose id is no message of that file", beta.done(held))
    return status(alpha, ids[0]) == "LOCKED" and pop(alpha, "bob") == ids[1]


@shows("ownership/up-to-below")
def up_to_below(folder: Path) -> bool:
    queue, [one] = box(folder, "alpha", "m1")
    pop(queue, "ann")
    told("ann finished none of it: retry", queue.retry(one))
    free = status(queue, one) == "READY"
    told("ann, who holds nothing now: done", queue.done(one))
    return free and status(queue, one) == "DONE"


@shows("cross-process/lease-exclusion", "cross-process/linearizable")
def lease_exclusion(folder: Path) -> bool:
    queue, ids = box(folder, "alpha", "m1 m2")
    with Peer(folder, "alpha") as peer:
        held = pop(queue, "ann")
        return held == ids[0] and peer.call("bob", "pop") == ids[1] and locked(queue, ids)


@shows("cross-process/expiry-visible")
def expiry_visible(folder: Path) -> bool:
    queue, ids = box(folder, "alpha", "m1 m2")
    with Peer(folder, "alpha") as peer:
        pop(queue, "ann")
        if peer.call("bob, while ann's claim lives", "pop") != ids[1]:
            return False
        wait(1.2)
        sweep(queue, 1)
        print("    what timed out is claimable in every process; that is not what fails")
        return [peer.call("cid", "pop") for _ in ids] == ids


@shows("cross-process/reopen-across")
def reopen_across(folder: Path) -> bool:
    queue, ids = box(folder, "alpha", "m1 m2")
    with Peer(folder, "alpha") as peer:
        pop(queue, "ann")
        queue.close()
        print("    this process closes the queue")
        bobs = peer.call("bob", "pop")
    return bobs == ids[1] and locked(LiteQueue(folder / "alpha.db"), ids)


@shows("cross-process/foreign-ack-across")
def foreign_ack_across(folder: Path) -> bool:
    queue, [one] = box(folder, "alpha", "m1")
    with Peer(folder, "alpha") as peer:
        pop(queue, "ann")
        peer.call("bob", "done", one)
        return status(queue, one) == "DONE"


@shows("cross-process/kill-mid-reap")
def kill_mid_reap(folder: Path) -> bool:
    queue, ids = box(folder, "beta", "b1 b2")
    pop(queue, "ann")
    with Peer(folder, "beta") as peer:
        peer.call("the reaper", "prune")
        peer.kill()
        held = status(queue, ids[0]) == "LOCKED"
        return held and pop(queue, "bob") == ids[1]


@shows("cross-process/kill-holding-lease")
def kill_holding_lease(folder: Path) -> bool:
    queue, [one] = box(folder, "alpha", "m1")
    with Peer(folder, "alpha") as peer:
        peer.call("bob", "pop")
        peer.kill()
        wait(1.2)
        sweep(queue, 1)
        free = status(queue, one) == "READY"
        told("an ack in the dead one's name: done", queue.done(one))
        return free and status(queue, one) == "DONE" and pop(queue, "cid") is None


def locked(queue: LiteQueue, ids: list[str]) -> bool:
    return all([status(queue, one) == "LOCKED" for one in ids])


def main() -> int:
    expected = tomllib.loads((Path(__file__).parent / "expect.toml").read_text(encoding="utf-8"))
    clauses = [row["clause"] for row in expected["expect"]]
    print(f"litequeue {importlib.metadata.version('litequeue')}, by hand")
    bad = 0
    for clause in clauses:
        print(clause)
        with tempfile.TemporaryDirectory() as folder:
            came = clause in SHOWN and SHOWN[clause](Path(folder))
        print("    reproduced" if came else "    NOT REPRODUCED")
        bad += not came
    for clause in sorted(SHOWN.keys() - set(clauses)):
        print(f"{clause}\n    reproduced here, and not in expect.toml")
        bad += 1
    print(f"{len(clauses)} expected failures, {bad} deviations")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
