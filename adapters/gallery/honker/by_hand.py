#!/usr/bin/env python3
"""Reproduces each failure of expect.toml on honker alone: no harness, no SDK, no adapter.

Prints what was done and what came back; exit 1 if one no longer reproduces, or if this file and
expect.toml name different clauses. Run it with `scripts/gallery certify honker`, or by itself:

    .gallery/honker/bin/python adapters/gallery/honker/by_hand.py
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

import honker

Show = Callable[[honker.Database], bool]
SHOWN: dict[str, Show] = {}

# A second process: calls of its own honker queue, one a line; jobs come back as their ids.
PEER = """
import honker, json, sys
queue = honker.open(sys.argv[1]).queue(sys.argv[2], visibility_timeout_s=3600)
for line in sys.stdin:
    method, *arguments = json.loads(line)
    answer = getattr(queue, method)(*arguments)
    print(json.dumps([job.id for job in answer] if method == "claim_batch" else answer), flush=True)
"""


class Peer:
    def __init__(self, db: honker.Database, queue: str) -> None:
        file = db.query("PRAGMA database_list")[0]["file"]
        self._child = subprocess.Popen(
            [sys.executable, "-c", PEER, file, queue],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
        )
        print(f"    another process opens queue {queue!r}: pid {self._child.pid}")

    def call(self, method: str, *arguments: Any) -> Any:
        self._child.stdin.write(json.dumps([method, *arguments]) + "\n")
        self._child.stdin.flush()
        return told(f"there: {method}{arguments}", json.loads(self._child.stdout.readline()))

    def __enter__(self) -> Peer:
        return self

    def __exit__(self, *_: object) -> None:
        self._child.kill()
        self._child.wait()
        self._child.stdin.close()
        self._child.stdout.close()


def shows(*clauses: str) -> Callable[[Show], Show]:
    def register(show: Show) -> Show:
        SHOWN.update({clause: show for clause in clauses})
        return show

    return register


def told(done: str, answer: Any) -> Any:
    """Prints one step and hands its answer on."""
    print(f"    {done}  ->  {answer!r}")
    return answer


def box(db: honker.Database, name: str, bodies: str) -> honker.Queue:
    queue = db.queue(name, visibility_timeout_s=3600)
    told(f"queue {name!r}: enqueue {bodies}", [queue.enqueue(body) for body in bodies.split()])
    return queue


def claim(queue: honker.Queue, worker: str, jobs: int = 32) -> list[int]:
    claimed = [job.id for job in queue.claim_batch(worker, jobs)]
    return told(f"queue {queue.name!r}: claim_batch({worker!r}, {jobs}), ids", claimed)


@shows("mailbox/core/claim-fences")
def claim_fences(db: honker.Database) -> bool:
    queue = box(db, "beta", "m1 m2 m3")
    held = claim(queue, "ann", 1)
    others = claim(queue, "bob")
    told("both claims are live: ack_batch of bob's", queue.ack_batch(others, "bob"))
    return held == [1] and others == [2, 3] and queue.ack_batch(held, "ann") == 1


@shows("mailbox/core/one-live-lease")
def one_live_lease(db: honker.Database) -> bool:
    queue = box(db, "alpha", "m1 m2 m3")
    first = claim(queue, "ann")
    told("enqueue m4", queue.enqueue("m4"))
    second = claim(queue, "ann")
    told("both claims are live: ack_batch of the first", queue.ack_batch(first, "ann"))
    told("ack_batch of the second", queue.ack_batch(second, "ann"))
    return first == [1, 2, 3] and second == [4]


@shows("mailbox/core/append-under-lease")
def append_under_lease(db: honker.Database) -> bool:
    queue = box(db, "alpha", "m1 m2")
    held = claim(queue, "ann")
    told("enqueue late, while ann's claim lives", queue.enqueue("late"))
    return held == [1, 2] and claim(queue, "bob") == [3]


@shows("mailbox/core/lease-lives-to-expiry")
def lease_lives_to_expiry(db: honker.Database) -> bool:
    queue = box(db, "beta", "m1")
    held = claim(queue, "ann")
    told("enqueue m2, while ann's claim lives", queue.enqueue("m2"))
    told("sweep_expired()", queue.sweep_expired())
    return held == [1] and claim(queue, "cid") == [2]


@shows("mailbox/core/reopen")
def reopen(db: honker.Database) -> bool:
    queue = box(db, "acked", "m1 m2 m3 m4")
    held = claim(queue, "ann")
    acked = told("ack_batch([1, 2], 'ann')", queue.ack_batch([1, 2], "ann"))
    left = told("the state of job 3, which ann did not ack", queue.get_job(3)["state"])
    return held == [1, 2, 3, 4] and acked == 2 and left == "processing" and claim(queue, "bob") == []


@shows("mailbox/core/ack-partial")
def ack_partial(db: honker.Database) -> bool:
    queue = box(db, "alpha", "m1 m2 m3 m4 m5")
    claim(queue, "ann")
    acked = told("ack_batch([1, 2, 3], 'ann')", queue.ack_batch([1, 2, 3], "ann"))
    nothing = claim(queue, "bob") == []
    left = told("the state of job 4, which ann did not ack", queue.get_job(4)["state"])
    return acked == 3 and nothing and left == "processing"


@shows("mailbox/core/reap-harmless")
def reap_harmless(db: honker.Database) -> bool:
    queue = box(db, "alpha", "a1 a2 a3")
    held = claim(queue, "ann", 2)
    told("sweep_expired()", queue.sweep_expired())
    return held == [1, 2] and claim(queue, "bob") == [3]


@shows("mailbox/core/invalid-input")
def invalid_input(db: honker.Database) -> bool:
    nameless = box(db, "", "m1")
    taken = [claim(nameless, "ann") == [1]]
    for seconds in (0, -1):
        queue = honker.Queue(db, f"ttl {seconds}", visibility_timeout_s=seconds)
        told(f"Queue(visibility_timeout_s={seconds}): enqueue m", queue.enqueue("m"))
        taken.append(len(claim(queue, "ann")) == 1)
    for jobs in (0, -1):
        taken.append(claim(db.queue("ttl 0"), "bob", jobs) == [])
    try:
        honker.Queue(db, "no number", visibility_timeout_s="soon")  # type: ignore[arg-type]
    except ValueError as error:
        told("Queue(visibility_timeout_s='soon'), which is refused", error)
    return all(taken)


@shows("mailbox/core/renew")
def renew(db: honker.Database) -> bool:
    queue = box(db, "beta", "m1 m2")
    claim(queue, "ann")
    zero = told("heartbeat(1, 'ann', 0)", queue.heartbeat(1, "ann", 0))
    negative = told("heartbeat(2, 'ann', -1)", queue.heartbeat(2, "ann", -1))
    return zero and negative and 2 in claim(queue, "bob")


@shows("mailbox/ownership/stale-ack-after-reclaim")
def stale_ack_after_reclaim(db: honker.Database) -> bool:
    return overtaken_by(db, "alpha", "bob") is False and overtaken_by(db, "beta", "ann") is True


def overtaken_by(db: honker.Database, name: str, second: str) -> bool | None:
    """What an ack from ann's expired claim answers once `second` has claimed the job anew; None if
    it could not be claimed anew."""
    queue = honker.Queue(db, name, visibility_timeout_s=1)
    told(f"queue {name!r}, with claims of 1 s: enqueue m", queue.enqueue("m"))
    old = queue.claim_one("ann")
    told("ann claims: job, attempts", old and (old.id, old.attempts))
    time.sleep(2.2)  # Claims end with a whole second, so this is past hers.
    queue.visibility_timeout_s = 3600
    new = queue.claim_one(second)
    told(f"2.2 s pass; {second} claims for an hour: job, attempts", new and (new.id, new.attempts))
    if not old or not new or new.id != old.id:
        return None
    taken = told("ack() of the job that ann's first claim gave", old.ack())
    told(f"ack() of the job that {second}'s claim gave", new.ack())
    return taken


@shows("mailbox/ownership/wrong-box-ack")
def wrong_box_ack(db: honker.Database) -> bool:
    alpha, beta = box(db, "alpha", "a1 a2"), box(db, "beta", "b1 b2")
    held = claim(alpha, "ann")
    acked = told(f"queue 'beta': ack_batch({held}, 'ann')", beta.ack_batch(held, "ann"))
    gone = told("queue 'alpha': job 1 and job 2", [alpha.get_job(job) for job in held])
    return acked == 2 and gone == [None, None]


@shows("mailbox/ownership/up-to-below")
def up_to_below(db: honker.Database) -> bool:
    queue = box(db, "alpha", "m1 m2")
    claim(queue, "ann", 1)
    told("ack_batch([1], 'ann')", queue.ack_batch([1], "ann"))
    claim(queue, "ann", 1)
    none = told("ann finished none of it: ack_batch([], 'ann')", queue.ack_batch([], "ann"))
    nothing = claim(queue, "bob") == []
    return none == 0 and nothing and told("ack_batch([2], 'ann')", queue.ack_batch([2], "ann")) == 1


@shows("mailbox/tenancy/scopes-isolated")
def scopes_isolated(db: honker.Database) -> bool:
    acme, globex = box(db, '["acme", "inbox"]', "a1 a2"), box(db, '["globex", "inbox"]', "g1 g2")
    held = claim(acme, "ann")
    claim(globex, "bob")
    acked = told(f"globex's queue: ack_batch({held}, 'ann')", globex.ack_batch(held, "ann"))
    left = told(
        "what acme's queue holds",
        db.query("SELECT id FROM _honker_jobs WHERE queue = ?", [acme.name]),
    )
    return acked == 2 and left == []


@shows("mailbox/cross-process/lease-exclusion", "mailbox/cross-process/ack-visible")
def rest_stays_claimed(db: honker.Database) -> bool:
    queue = box(db, "alpha", "m1 m2 m3")
    held = claim(queue, "ann")
    with Peer(db, "alpha") as peer:
        fenced = peer.call("claim_batch", "bob", 32) == []
        acked = told("ack_batch([1], 'ann')", queue.ack_batch([1], "ann"))
        nothing = peer.call("claim_batch", "bob", 32) == []
    return held == [1, 2, 3] and fenced and acked == 1 and nothing and left_claimed(queue, 2, 3)


@shows("mailbox/cross-process/reopen-across", "mailbox/cross-process/linearizable")
def reopen_across(db: honker.Database) -> bool:
    queue = box(db, "alpha", "m1 m2")
    held = claim(queue, "ann")
    with Peer(db, "alpha") as peer:
        early = peer.call("enqueue", "early")
        db.close()
        print("    this process closes the database")
        return held == [1, 2] and peer.call("claim_batch", "bob", 32) == [early]


def left_claimed(queue: honker.Queue, *jobs: int) -> bool:
    states = [told(f"the state of job {job}", queue.get_job(job)["state"]) for job in jobs]
    return states == ["processing"] * len(jobs)


def main() -> int:
    expected = tomllib.loads((Path(__file__).parent / "expect.toml").read_text(encoding="utf-8"))
    clauses = [row["clause"] for row in expected["expect"]]
    print(f"honker {importlib.metadata.version('honker')}, by hand")
    bad = 0
    for clause in clauses:
        print(clause)
        with tempfile.TemporaryDirectory() as folder:
            db = honker.open(str(Path(folder) / "by_hand.db"))
            came = clause in SHOWN and SHOWN[clause](db)
            db.close()
        print("    reproduced" if came else "    NOT REPRODUCED")
        bad += not came
    for clause in sorted(SHOWN.keys() - set(clauses)):
        print(f"{clause}\n    reproduced here, and not in expect.toml")
        bad += 1
    print(f"{len(clauses)} expected failures, {bad} deviations")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
