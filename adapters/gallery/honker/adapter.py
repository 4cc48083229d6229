#!/usr/bin/env python3
"""honker (a work queue on SQLite) before the mailbox suites, exactly as it is.

One open store is one honker database; one box is one of its named queues. No lock, no owner check
and no bookkeeping is added; what honker answers is what is passed on:

    append   Queue.enqueue; the job id is the seq
    claim    Queue.claim_batch of at most CLAIM_JOBS_MAX jobs, `owner` as the worker. honker has no
             ttl per claim but one per Queue object, in whole seconds: it is set before each claim,
             cut to seconds as Queue's constructor cuts it
    ack      Queue.ack_batch of those jobs of the claim that are not above upTo. Its count is
             `acked`; a count of 0 for at least one job is honker's no: `lease_not_held`
    renew    Queue.heartbeat of each job of the claim; False for all of them is honker's no
    peek     a SELECT on the view _honker_jobs, which honker makes for inspection
    reap     Queue.sweep_expired of every queue that has jobs
    drop     honker has no purge: Queue.cancel of each job that the view shows; `dropped` counts
             its yeses

A claim has no id in honker, so the lease is what honker told about each job of it: `id.attempts`,
where `attempts` grows with every claim of the job. Ack and renew hand the ids to honker; what else
must hold is honker's to check. `release` is not declared: Queue.retry is the only way to put a job
back, and it is a failed attempt, which buries the job in _honker_dead from the third on.
"""

from __future__ import annotations

import importlib.metadata
import json
import re
import shutil
import sys
import tempfile
from pathlib import Path
from typing import Any

import honker

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "python"))

from storeproof_adapter import (  # noqa: E402
    Capabilities, Claim, Json, Limits, Mailbox, Message, Opened, Refused, Subject, serve,
)

CLAIM_JOBS_MAX = 32  # The batch of honker's own README; claim_batch has no default.
DATABASE = "honker.db"


class HonkerMailbox(Mailbox):
    def __init__(self, folder: str) -> None:
        self._db = honker.open(str(Path(folder) / DATABASE))
        self._db.queue("")  # honker makes its tables and its view with the first queue.

    def append(self, scope: str, handle: str, body: Json, now: int) -> int:
        return self._queue(scope, handle).enqueue(body)

    def claim(
        self, scope: str, handle: str, owner: str, ttl_ms: Any, max_messages: Any, now: int
    ) -> Claim | None:
        queue = self._queue(scope, handle)
        try:
            queue.visibility_timeout_s = int(ttl_ms / 1000)
        except TypeError as why:  # No number: it cannot be told to honker at all.
            raise Refused("invalid_ttl", str(why)) from why
        jobs = queue.claim_batch(owner, CLAIM_JOBS_MAX if max_messages is None else max_messages)
        if not jobs:
            return None
        lease = ",".join(f"{job.id}.{job.attempts}" for job in jobs)
        return Claim(lease, [Message(job.id, job.payload) for job in jobs])

    def ack(self, scope: str, handle: str, owner: str, lease: str, up_to: Any, now: int) -> int:
        jobs = [job for job in _jobs(lease) if job <= up_to]
        acked = self._queue(scope, handle).ack_batch(jobs, owner)
        if jobs and acked == 0:
            raise Refused("lease_not_held", "ack_batch answered 0")
        return acked

    def renew(
        self, scope: str, handle: str, owner: str, lease: str, ttl_ms: Any, now: int
    ) -> None:
        queue = self._queue(scope, handle)
        renewed = [queue.heartbeat(job, owner, int(ttl_ms / 1000)) for job in _jobs(lease)]
        if not any(renewed):
            raise Refused("lease_not_held", "heartbeat answered False")

    def peek(self, scope: str, handle: str, now: int) -> list[Message]:
        return [Message(row["id"], json.loads(row["payload"])) for row in self._rows(scope, handle)]

    def reap(self, now: int) -> None:
        for row in self._db.query("SELECT DISTINCT queue FROM _honker_jobs"):
            self._db.queue(row["queue"]).sweep_expired()

    def drop(self, scope: str, handle: str, now: int) -> int:
        queue = self._queue(scope, handle)
        return sum(queue.cancel(row["id"]) for row in self._rows(scope, handle))

    def close(self) -> None:
        self._db.close()

    def _queue(self, scope: str, handle: str) -> honker.Queue:
        return self._db.queue(_name(scope, handle))

    def _rows(self, scope: str, handle: str) -> list[dict[str, Any]]:
        return self._db.query(
            "SELECT id, payload FROM _honker_jobs WHERE queue = ? AND state <> 'dead' ORDER BY id",
            [_name(scope, handle)],
        )


def _name(scope: str, handle: str) -> str:
    """The queue's name: JSON text, so that no two pairs share one."""
    return json.dumps([scope, handle])


def _jobs(lease: str) -> list[int]:
    """The job ids in a lease. A text that is no lease of this adapter becomes job 0, which honker
    never mints, so that the answer is honker's own here too."""
    if not re.fullmatch(r"\d+\.\d+(,\d+\.\d+)*", lease):
        return [0]
    return [int(part.split(".")[0]) for part in lease.split(",")]


class HonkerSubject(Subject):
    name = "honker"
    version = importlib.metadata.version("honker")
    homepage = "https://honker.dev"
    capabilities = Capabilities(
        mailbox=True, durable=True, tenancy=True, cross_process_safe=True, peek=True, renew=True,
        clock="wall",
    )
    limits = Limits(lease_granularity_ms=1000)

    def open(self) -> Opened:
        folder = tempfile.mkdtemp(prefix="honker-")
        return Opened(HonkerMailbox(folder), location=folder, root=folder)

    def attach(self, location: Json) -> HonkerMailbox:
        if not (Path(location) / DATABASE).is_file():
            raise FileNotFoundError(f"{location} holds no {DATABASE}")
        return HonkerMailbox(location)

    def destroy(self, location: Json) -> None:
        if (Path(location) / DATABASE).is_file():
            shutil.rmtree(location)


if __name__ == "__main__":
    serve(HonkerSubject)
