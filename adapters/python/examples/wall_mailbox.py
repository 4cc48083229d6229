#!/usr/bin/env python3
"""A legitimate but unusual store: nothing optional, and every liberty the contract leaves is taken.

It has its own clock, hands out at most two messages at a time, leaves gaps between seqs, keeps
plain names and short ASCII texts only, gives a holder that claims again its same lease, and answers
a second ack of a settled lease with 0.
"""

from __future__ import annotations

import re
import secrets
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from storeproof_adapter import (  # noqa: E402
    Capabilities, Claim, Json, Mailbox, Message, Refused, Subject, serve,
)

CLAIM_MESSAGES_MAX = 2
BODY_BYTES_MAX = 1024
SEQ_STEP_MAX = 9


@dataclass
class Box:
    """`settled` is the last lease that was acked, so that acking it again can be told apart."""

    messages: list[Message] = field(default_factory=list)
    delivered: list[Message] = field(default_factory=list)
    lease: tuple[str, str] | None = None  # (lease, owner)
    settled: tuple[str, str] | None = None
    expires_s: float = 0.0


class WallMailbox(Mailbox):
    """`now` is ignored throughout: leases run on `clock_s`, seconds that never go back."""

    def __init__(self, clock_s: Callable[[], float] = time.monotonic) -> None:
        self._clock_s = clock_s
        self._boxes: dict[tuple[str, str], Box] = {}
        self._last_seq = 0
        self._closed = False

    def append(self, scope: str, handle: str, body: Json, now: int) -> int:
        box = self._box(scope, handle)
        if not isinstance(body, str) or not body.isascii():
            raise Refused("invalid_body", "an ASCII text is all this store keeps")
        if len(body) > BODY_BYTES_MAX:
            raise Refused("too_large", f"more than {BODY_BYTES_MAX} bytes")
        self._last_seq += 1 + secrets.randbelow(SEQ_STEP_MAX)
        box.messages.append(Message(self._last_seq, body))
        return self._last_seq

    def claim(
        self, scope: str, handle: str, owner: str, ttl_ms: Any, max_messages: Any, now: int
    ) -> Claim | None:
        box = self._box(scope, handle)
        if type(ttl_ms) is not int or ttl_ms <= 0:
            raise Refused("invalid_ttl", f"{ttl_ms!r} is no span of time")
        if max_messages is not None and (type(max_messages) is not int or max_messages <= 0):
            raise Refused("invalid_max", f"{max_messages!r} is no number of messages")
        if box.lease is not None:
            lease, holder = box.lease
            return Claim(lease, box.delivered) if holder == owner else None
        if not box.messages:
            return None
        box.delivered = box.messages[: min(max_messages or CLAIM_MESSAGES_MAX, CLAIM_MESSAGES_MAX)]
        box.lease = (secrets.token_urlsafe(16), owner)
        box.expires_s = self._clock_s() + ttl_ms / 1000
        return Claim(box.lease[0], box.delivered)

    def ack(self, scope: str, handle: str, owner: str, lease: str, up_to: Any, now: int) -> int:
        box = self._box(scope, handle)
        if box.settled == (lease, owner):
            return 0
        if box.lease != (lease, owner):
            raise Refused("lease_not_held")
        acked = sum(1 for message in box.delivered if message.seq <= up_to)
        box.messages, box.settled, box.lease = box.messages[acked:], box.lease, None
        return acked

    def reap(self, now: int) -> None:
        self._open()
        for scope, handle in self._boxes:
            self._box(scope, handle)

    def drop(self, scope: str, handle: str, now: int) -> int:
        box = self._box(scope, handle)
        del self._boxes[scope, handle]
        return len(box.messages)

    def close(self) -> None:
        self._closed = True
        self._boxes.clear()

    def _open(self) -> None:
        if self._closed:
            raise Refused("closed")

    def _box(self, scope: str, handle: str) -> Box:
        """The box as it stands now: an expired lease is gone."""
        self._open()
        for name in (scope, handle):
            if not re.fullmatch("[a-z][a-z0-9]{0,15}", name):
                raise Refused("invalid_name", f"{name!r} is not a name this store keeps")
        box = self._boxes.setdefault((scope, handle), Box())
        if self._clock_s() >= box.expires_s:
            box.lease = None
        return box


class WallSubject(Subject):
    name = "python-wall"
    version = "1.0.0"
    capabilities = Capabilities(mailbox=True, clock="wall")

    def open(self) -> WallMailbox:
        return WallMailbox()


if __name__ == "__main__":
    serve(WallSubject)
