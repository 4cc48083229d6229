#!/usr/bin/env python3
"""litequeue (a work queue on SQLite) before the mailbox suites, exactly as it is.

One open store is a folder; one box is one litequeue in a file of its own there, as its README
recommends for several queues. No lock, no owner check and no bookkeeping of claims is added; what
litequeue does is what is passed on:

    append   LiteQueue.put; the seq is the message id's own leading bits, see `_seq`
    claim    LiteQueue.pop, one message a claim (litequeue has no batch). Owner and max have
             nothing to go to. litequeue ends no claim by itself; its caller is to `list_locked`
             what has been locked for too many seconds and to `retry` each. Here that is done
             before each claim and in reap. The seconds are those of the last claim on that box
             that found something; before there is one, nothing is swept
    ack      LiteQueue.done of the claim's message, or LiteQueue.retry if it is above upTo: that
             claim is over and the message free. `done` answers a number that says nothing
             (lastrowid), so `get` is asked before: a message that is not there is a no,
             `lease_not_held`, and one that was done before counts as 0
    release  LiteQueue.retry; a message that `get` does not find is a no
    reap     the sweep, and LiteQueue.prune, for every box
    drop     litequeue has no purge and cannot list messages that wait: a DELETE of the ready and
             locked rows in its table; `dropped` counts them

A claim has no id in litequeue, so the lease is what `pop` told about it: message id and lock time.
Ack and release hand the id to litequeue, and whatever else must hold is litequeue's to check.

The seconds of the sweep stand in the file's user_version, a number that SQLite keeps for those who
use the file: the processes of one deployment are configured alike, and so must the bench's be.
Not declared: `peek`, since LiteQueue.peek shows one message and no locked one; `renew`, since there
is nothing of the kind.
"""

from __future__ import annotations

import hashlib
import importlib.metadata
import json
import shutil
import sqlite3
import sys
import tempfile
from pathlib import Path
from typing import Any

from litequeue import LiteQueue, MessageStatus, uuid7

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "python"))

from storeproof_adapter import (  # noqa: E402
    Capabilities, Claim, Json, Limits, Mailbox, Message, Opened, Refused, Subject, serve,
)

QUEUES_OPEN_MAX = 200  # Connections kept open, each with three files; the longest unused is closed.
OPENINGS_MAX = 5
RANDOM_BITS = 12
SEQ_MAX = 2**53 - 1


class LitequeueMailbox(Mailbox):
    def __init__(self, folder: str, epoch: int) -> None:
        self._folder = Path(folder)
        self._epoch = epoch
        self._queues: dict[Path, LiteQueue] = {}
        self._closed = False

    def append(self, scope: str, handle: str, body: Json, now: int) -> int:
        put = self._queue(self._file(scope, handle)).put(json.dumps(body))
        return self._seq(put.message_id)

    def claim(
        self, scope: str, handle: str, owner: str, ttl_ms: Any, max_messages: Any, now: int
    ) -> Claim | None:
        queue = self._queue(self._file(scope, handle))
        _sweep(queue)
        try:
            seconds = int(ttl_ms / 1000)
        except TypeError as why:  # No number: it cannot be told to litequeue at all.
            raise Refused("invalid_ttl", str(why)) from why
        # Before the pop, so that no kill between the two leaves a claim that nobody ever sweeps.
        if queue.peek() is not None and seconds != _swept_after(queue):
            queue.conn.execute(f"PRAGMA user_version = {seconds}")
        popped = queue.pop()
        if popped is None:
            return None
        message = Message(self._seq(popped.message_id), json.loads(popped.data))
        return Claim(f"{popped.message_id}@{popped.lock_time}", [message])

    def ack(self, scope: str, handle: str, owner: str, lease: str, up_to: Any, now: int) -> int:
        queue = self._queue(self._file(scope, handle))
        message_id = lease.split("@")[0]
        before = queue.get(message_id)
        if before is not None and self._seq(message_id) > up_to:
            queue.retry(message_id)
            return 0
        queue.done(message_id)
        if before is None:
            raise Refused("lease_not_held", "get knows no such message; done said nothing")
        return int(before.status != MessageStatus.DONE)

    def release(self, scope: str, handle: str, owner: str, lease: str, now: int) -> None:
        queue = self._queue(self._file(scope, handle))
        message_id = lease.split("@")[0]
        before = queue.get(message_id)
        queue.retry(message_id)
        if before is None:
            raise Refused("lease_not_held", "get knows no such message; retry said nothing")

    def reap(self, now: int) -> None:
        for file in sorted(self._folder.glob("*.db")):
            queue = self._queue(file)
            _sweep(queue)
            queue.prune()

    def drop(self, scope: str, handle: str, now: int) -> int:
        queue = self._queue(self._file(scope, handle))
        waiting = (MessageStatus.READY.value, MessageStatus.LOCKED.value)
        return queue.conn.execute(
            f"DELETE FROM {queue.table} WHERE status IN (?, ?)", waiting
        ).rowcount

    def close(self) -> None:
        self._closed = True
        for queue in self._queues.values():
            queue.close()

    def _file(self, scope: str, handle: str) -> Path:
        """The box's file: a digest, so that no two pairs share one and any name makes one."""
        name = json.dumps([scope, handle]).encode()
        return self._folder / f"{hashlib.sha256(name).hexdigest()}.db"

    def _queue(self, file: Path) -> LiteQueue:
        if self._closed:
            raise Refused("closed", "the folder of queues was closed")
        queue = self._queues.pop(file, None) or _opened(file)
        self._queues[file] = queue
        if len(self._queues) > QUEUES_OPEN_MAX:
            self._queues.pop(next(iter(self._queues))).close()
        return queue

    def _seq(self, message_id: str) -> int:
        """The id as a number: its time, counted from the store's opening, and the first of its
        random bits. litequeue delivers in the order of its ids, so this is the order it keeps.

        A rowid would not do: SQLite hands it out again after `prune`, renumbers it in `vacuum`, and
        litequeue never orders by it.
        """
        seq = (_ticks(message_id) - self._epoch) << RANDOM_BITS
        seq |= int(message_id[24:36], 16) >> (48 - RANDOM_BITS)
        if not 0 < seq <= SEQ_MAX:
            raise OverflowError(f"{message_id} is no id of the 36 hours after the store was opened")
        return seq


def _ticks(message_id: str) -> int:
    """The 60 bits of time in a litequeue id (of 59.6 ns), which stand around its version digit."""
    digits = message_id.replace("-", "")
    return int(digits[:12] + digits[13:16], 16)


def _opened(file: Path) -> LiteQueue:
    """Opens a box. Where two processes make the same file at the same moment, litequeue's
    constructor now and then raises `database is locked`. Opening is no call of the contract; a
    worker that did not start is started again."""
    for _ in range(OPENINGS_MAX - 1):
        try:
            return LiteQueue(file)
        except sqlite3.OperationalError as why:
            print(f"opening {file.name} again: {why}", file=sys.stderr)
    return LiteQueue(file)


def _swept_after(queue: LiteQueue) -> int:
    return int(queue.conn.execute("PRAGMA user_version").fetchone()[0])


def _sweep(queue: LiteQueue) -> None:
    seconds = _swept_after(queue)
    if seconds:
        for message in list(queue.list_locked(seconds)):
            queue.retry(message.message_id)


class LitequeueSubject(Subject):
    name = "litequeue"
    version = importlib.metadata.version("litequeue")
    homepage = "https://github.com/litements/litequeue"
    capabilities = Capabilities(
        mailbox=True, durable=True, tenancy=True, cross_process_safe=True, release=True,
        clock="wall",
    )
    limits = Limits(lease_granularity_ms=1000)

    def open(self) -> Opened:
        folder = tempfile.mkdtemp(prefix="litequeue-")
        location = {"folder": folder, "epoch": _ticks(uuid7()) - 1}
        return Opened(LitequeueMailbox(**location), location=location, root=folder)

    def attach(self, location: Json) -> LitequeueMailbox:
        if not Path(location["folder"]).is_dir():
            raise FileNotFoundError(f"{location['folder']} is no folder")
        return LitequeueMailbox(**location)

    def destroy(self, location: Json) -> None:
        shutil.rmtree(location["folder"])


if __name__ == "__main__":
    serve(LitequeueSubject)
