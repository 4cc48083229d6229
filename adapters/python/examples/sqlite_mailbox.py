#!/usr/bin/env python3
"""A durable mailbox store in one SQLite file that several processes share.

What keeps it right: every operation is one BEGIN IMMEDIATE transaction, so nothing is decided on
what another process may have changed since; nothing is cached between operations; the last seq of a
box is a column of the box, which outlives its messages.
"""

from __future__ import annotations

import json
import random
import secrets
import shutil
import sqlite3
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from storeproof_adapter import (  # noqa: E402
    Capabilities, Claim, Json, Mailbox, Message, Opened, Refused, Subject, serve,
)

SCHEMA = """
CREATE TABLE box (
    id INTEGER PRIMARY KEY, scope TEXT NOT NULL, handle TEXT NOT NULL,
    last_seq INTEGER NOT NULL DEFAULT 0, tombstoned INTEGER NOT NULL DEFAULT 0,
    lease TEXT, owner TEXT, expires INTEGER, delivered INTEGER,
    UNIQUE (scope, handle)
);
CREATE TABLE message (
    box INTEGER NOT NULL REFERENCES box (id), seq INTEGER NOT NULL, body TEXT NOT NULL,
    PRIMARY KEY (box, seq)
) WITHOUT ROWID;
"""
FREE = "UPDATE box SET lease = NULL, owner = NULL, expires = NULL, delivered = NULL"
ROOT_PREFIX = "storeproof-sqlite-"
FILE_NAME = "mailbox.db"
LOCK_WAIT_S_MAX = 30.0
RETRY_WAIT_S_MAX = 0.002
NUMBER_MAX = 2**53


class SqliteMailbox(Mailbox):
    """One connection to the file `path`, which must exist."""

    def __init__(self, path: Path) -> None:
        # isolation_level=None: no transaction begins behind our back.
        self._db = sqlite3.connect(
            path.as_uri() + "?mode=rw", uri=True, isolation_level=None, timeout=LOCK_WAIT_S_MAX
        )
        self._db.row_factory = sqlite3.Row
        self._closed = False
        self._db.execute("PRAGMA synchronous = FULL")  # A receipt is on disk before it is given.
        # SQLite's own waiting backs off to 100 ms, where a busy neighbour can starve us for
        # seconds: from here on `_transaction` does the waiting.
        self._db.execute("PRAGMA busy_timeout = 0")

    def append(self, scope: str, handle: str, body: Json, now: int) -> int:
        named(scope, handle)
        text = json.dumps(body, ensure_ascii=False, allow_nan=False)
        with self._transaction():
            box = self._box(scope, handle) or self._new_box(scope, handle)
            if box["tombstoned"]:
                raise Refused("recipient_deleted", "this recipient is being deleted")
            seq: int = box["last_seq"] + 1
            self._db.execute("UPDATE box SET last_seq = ? WHERE id = ?", (seq, box["id"]))
            self._db.execute("INSERT INTO message VALUES (?, ?, ?)", (box["id"], seq, text))
        return seq

    def claim(
        self, scope: str, handle: str, owner: str, ttl_ms: Any, max_messages: Any, now: int
    ) -> Claim | None:
        named(scope, handle)
        positive("invalid_ttl", ttl_ms)
        if max_messages is not None:
            positive("invalid_max", max_messages)
        with self._transaction():
            box = self._box(scope, handle)
            if box is None:
                return None
            if box["lease"] is not None and now < box["expires"]:
                if box["owner"] != owner:
                    return None
                return Claim(box["lease"], self._messages(box, up_to=box["delivered"]))
            messages = self._messages(box, limit=max_messages)
            if not messages:
                return None
            lease = secrets.token_hex(16)
            self._db.execute(
                "UPDATE box SET lease = ?, owner = ?, expires = ?, delivered = ? WHERE id = ?",
                (lease, owner, now + ttl_ms, messages[-1].seq, box["id"]),
            )
            return Claim(lease, messages)

    def ack(self, scope: str, handle: str, owner: str, lease: str, up_to: Any, now: int) -> int:
        with self._transaction():
            box = self._held(scope, handle, owner, lease, now)
            acked = self._db.execute(
                "DELETE FROM message WHERE box = ? AND seq <= ?",
                (box["id"], min(up_to, box["delivered"])),
            ).rowcount
            self._db.execute(FREE + " WHERE id = ?", (box["id"],))
        return acked

    def release(self, scope: str, handle: str, owner: str, lease: str, now: int) -> None:
        with self._transaction():
            box = self._held(scope, handle, owner, lease, now)
            self._db.execute(FREE + " WHERE id = ?", (box["id"],))

    def renew(self, scope: str, handle: str, owner: str, lease: str, ttl_ms: Any, now: int) -> None:
        positive("invalid_ttl", ttl_ms)
        with self._transaction():
            box = self._held(scope, handle, owner, lease, now)
            self._db.execute("UPDATE box SET expires = ? WHERE id = ?", (now + ttl_ms, box["id"]))

    def peek(self, scope: str, handle: str, now: int) -> list[Message]:
        named(scope, handle)
        with self._transaction():
            box = self._box(scope, handle)
            return [] if box is None else self._messages(box)

    def reap(self, now: int) -> None:
        with self._transaction():
            self._db.execute(FREE + " WHERE expires <= ?", (now,))

    def drop(self, scope: str, handle: str, now: int) -> int:
        named(scope, handle)
        with self._transaction():
            box = self._box(scope, handle)
            if box is None:
                return 0
            self._db.execute(FREE + " WHERE id = ?", (box["id"],))
            return self._db.execute("DELETE FROM message WHERE box = ?", (box["id"],)).rowcount

    def tombstone(self, scope: str, handle: str, now: int) -> None:
        named(scope, handle)
        with self._transaction():
            box = self._box(scope, handle) or self._new_box(scope, handle)
            self._db.execute("UPDATE box SET tombstoned = 1 WHERE id = ?", (box["id"],))

    def close(self) -> None:
        self._closed = True
        self._db.close()

    @contextmanager
    def _transaction(self) -> Iterator[None]:
        if self._closed:
            raise Refused("closed")
        self._begin()
        try:
            yield
            self._db.execute("COMMIT")
        except BaseException:
            if self._db.in_transaction:
                self._db.execute("ROLLBACK")
            raise

    def _begin(self) -> None:
        give_up = time.monotonic() + LOCK_WAIT_S_MAX
        while True:
            try:
                self._db.execute("BEGIN IMMEDIATE")
                return
            except sqlite3.OperationalError as why:
                if "lock" not in str(why) or time.monotonic() > give_up:
                    raise
            time.sleep(random.uniform(0, RETRY_WAIT_S_MAX))

    def _box(self, scope: str, handle: str) -> Any:
        return self._db.execute(
            "SELECT * FROM box WHERE scope = ? AND handle = ?", (scope, handle)
        ).fetchone()

    def _new_box(self, scope: str, handle: str) -> Any:
        self._db.execute("INSERT INTO box (scope, handle) VALUES (?, ?)", (scope, handle))
        return self._box(scope, handle)

    def _held(self, scope: str, handle: str, owner: str, lease: str, now: int) -> Any:
        box = self._box(scope, handle)
        if box is None or (box["lease"], box["owner"]) != (lease, owner) or now >= box["expires"]:
            raise Refused("lease_not_held", f"{owner} does not hold the live lease of this box")
        return box

    def _messages(
        self, box: Any, up_to: int = NUMBER_MAX, limit: int | None = None
    ) -> list[Message]:
        rows = self._db.execute(
            "SELECT seq, body FROM message WHERE box = ? AND seq <= ? ORDER BY seq LIMIT ?",
            (box["id"], up_to, -1 if limit is None else limit),
        )
        return [Message(row["seq"], json.loads(row["body"])) for row in rows]


def named(scope: str, handle: str) -> None:
    if not scope or not handle:
        raise Refused("invalid_name", "scope and handle are never empty")


def positive(reason: str, value: Any) -> None:
    # type() and not isinstance(): bool is an int in Python, and no number here.
    if type(value) is not int or not 0 < value <= NUMBER_MAX:
        raise Refused(reason, f"an integer above 0 and at most {NUMBER_MAX}, not {value!r}")


class SqliteSubject(Subject):
    """A location is the absolute path of the file; its folder is the root and holds all of it."""

    name = "python-sqlite"
    version = "1.0.0"
    capabilities = Capabilities(
        mailbox=True,
        durable=True,
        tenancy=True,
        cross_process_safe=True,
        tombstone=True,
        peek=True,
        release=True,
        renew=True,
        clock="caller",
    )

    def open(self) -> Opened:
        root = Path(tempfile.mkdtemp(prefix=ROOT_PREFIX)).resolve()
        path = root / FILE_NAME
        db = sqlite3.connect(path)
        try:
            # Write-ahead log: a commit is one fsync, and no reader can make a writer fail.
            (mode,) = db.execute("PRAGMA journal_mode = WAL").fetchone()
            if mode != "wal":
                raise OSError(f"{root} is on a file system without write-ahead log ({mode})")
            db.executescript(SCHEMA)
        finally:
            db.close()
        return Opened(SqliteMailbox(path), location=str(path), root=str(root))

    def attach(self, location: Json) -> SqliteMailbox:
        return SqliteMailbox(Path(location))

    def destroy(self, location: Json) -> None:
        root = Path(location).parent
        if not root.name.startswith(ROOT_PREFIX):
            raise ValueError(f"{location} was not opened here, so it is not removed")
        if root.exists():
            shutil.rmtree(root)


if __name__ == "__main__":
    serve(SqliteSubject)
