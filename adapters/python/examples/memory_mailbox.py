#!/usr/bin/env python3
"""A whole adapter on one page: a mailbox store in memory, and the call that serves it.

Try it: `storeproof certify -- python3 memory_mailbox.py`. To start your own store, copy this file,
keep the last part, and let the methods of `MemoryMailbox` call your store instead.
"""

from __future__ import annotations

import secrets
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

# Needed only where the SDK is not installed (`pip install ./adapters/python`).
sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from storeproof_adapter import (  # noqa: E402
    Capabilities, Claim, Json, Mailbox, Message, Refused, Subject, serve,
)


@dataclass
class Lease:
    """The fence around one box: while `now < expires`, only `owner` may settle it."""

    id: str
    owner: str
    expires: int
    messages: list[Message]  # What this lease delivered, and so all that its ack may remove.


@dataclass
class Box:
    """One recipient's messages. `last_seq` only ever grows, so no seq is minted twice."""

    last_seq: int = 0
    messages: list[Message] = field(default_factory=list)
    lease: Lease | None = None

    def live_lease(self, now: int) -> Lease | None:
        return self.lease if self.lease and now < self.lease.expires else None

    def held(self, owner: str, lease: str, now: int) -> Lease:
        live = self.live_lease(now)
        if live is None or (live.id, live.owner) != (lease, owner):
            raise Refused("lease_not_held", f"{owner} does not hold the live lease of this box")
        return live


class MemoryMailbox(Mailbox):
    """Boxes by (scope, handle). The pair is the key: joining two names would let boxes collide."""

    def __init__(self) -> None:
        self._boxes: dict[tuple[str, str], Box] | None = {}

    def append(self, scope: str, handle: str, body: Json, now: int) -> int:
        named(scope, handle)
        box = self._open().setdefault((scope, handle), Box())
        box.last_seq += 1
        box.messages.append(Message(box.last_seq, body))
        return box.last_seq

    def claim(
        self, scope: str, handle: str, owner: str, ttl_ms: Any, max_messages: Any, now: int
    ) -> Claim | None:
        named(scope, handle)
        positive("invalid_ttl", ttl_ms)
        if max_messages is not None:
            positive("invalid_max", max_messages)
        box = self._box(scope, handle)
        live = box.live_lease(now)
        if live is not None:
            return Claim(live.id, live.messages) if live.owner == owner else None
        delivered = box.messages[:max_messages]
        if not delivered:
            return None  # An empty claim installs nothing.
        box.lease = Lease(secrets.token_hex(16), owner, now + ttl_ms, delivered)
        return Claim(box.lease.id, delivered)

    def ack(self, scope: str, handle: str, owner: str, lease: str, up_to: Any, now: int) -> int:
        box = self._box(scope, handle)
        delivered = box.held(owner, lease, now).messages
        acked = sum(1 for message in delivered if message.seq <= up_to)
        del box.messages[:acked]  # The delivered messages are the first of the box.
        box.lease = None
        return acked

    def release(self, scope: str, handle: str, owner: str, lease: str, now: int) -> None:
        box = self._box(scope, handle)
        box.held(owner, lease, now)
        box.lease = None

    def renew(self, scope: str, handle: str, owner: str, lease: str, ttl_ms: Any, now: int) -> None:
        positive("invalid_ttl", ttl_ms)
        self._box(scope, handle).held(owner, lease, now).expires = now + ttl_ms

    def peek(self, scope: str, handle: str, now: int) -> list[Message]:
        named(scope, handle)
        return self._box(scope, handle).messages

    def reap(self, now: int) -> None:
        for box in self._open().values():
            box.lease = box.live_lease(now)

    def drop(self, scope: str, handle: str, now: int) -> int:
        named(scope, handle)
        box = self._box(scope, handle)
        dropped, box.messages, box.lease = len(box.messages), [], None
        return dropped

    def close(self) -> None:
        self._boxes = None

    def _open(self) -> dict[tuple[str, str], Box]:
        if self._boxes is None:
            raise Refused("closed")
        return self._boxes

    def _box(self, scope: str, handle: str) -> Box:
        return self._open().get((scope, handle), Box())


def named(scope: str, handle: str) -> None:
    if not scope or not handle:
        raise Refused("invalid_name", "scope and handle are never empty")


def positive(reason: str, value: Any) -> None:
    # type() and not isinstance(): bool is an int in Python, and no number here.
    if type(value) is not int or value <= 0:
        raise Refused(reason, f"an integer above 0, not {value!r}")


class MemorySubject(Subject):
    name = "python-memory"
    version = "1.0.0"
    capabilities = Capabilities(
        mailbox=True, tenancy=True, peek=True, release=True, renew=True, clock="caller"
    )

    def open(self) -> MemoryMailbox:
        return MemoryMailbox()


if __name__ == "__main__":
    serve(MemorySubject)
