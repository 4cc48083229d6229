"""What an author writes for ONE open store, and the words it answers with."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple, Union

Json = Any
"""Any JSON value: None, bool, int, float, str, list, dict with str keys."""

Seq = Union[int, str]
"""A mailbox numbers its messages with ints; a queue that declared other ids may use strings."""


class Refused(Exception):
    """A refusal: the store says no, and the bench judges that answer.

    `reason` is a code such as `lease_not_held`; `message` is for people; `data` are further members
    that travel beside the reason (`Refused("bad_package", "cut short", code="not-json")`).
    Every other exception is a fault: the bench then cannot judge the clause at all.
    """

    def __init__(self, reason: str, message: str = "", **data: Json) -> None:
        if not isinstance(reason, str) or not reason:
            raise TypeError(f"Refused needs a reason code (a non-empty str), not {reason!r}")
        super().__init__(message or reason)
        self.reason = reason
        self.message = message or reason
        self.data = data


class NotWritten(Exception):
    """The author did not write this optional method. Internal: it becomes error -32601."""


class Message(NamedTuple):
    """One message as it is delivered or peeked at."""

    seq: Seq
    body: Json


class Claim(NamedTuple):
    """What a claim hands out: the lease id, and at least one message, ascending by seq."""

    lease: str
    messages: Sequence[Message]


class Mailbox:
    """One open store. Override the methods your store has; the rest answer "no such method".

    `now` is integer epoch milliseconds. With `clock="caller"` judge leases by it; with
    `clock="wall"` ignore it. `scope`, `handle`, `owner` and `lease` always arrive as str (an empty
    one is yours to refuse); `ttl_ms` and `max_messages` arrive as they were sent, whatever their
    type, because refusing a bad one is part of the contract. Arguments are passed by position, in
    the order shown, so you may rename them. After `close` the bench calls again on purpose: raise.
    """

    def append(self, scope: str, handle: str, body: Json, now: int, /) -> Seq:
        """Keep one message and return its seq. Refuses `invalid_name`, `invalid_body`,
        `too_large`, and for a tombstoned recipient `recipient_deleted`."""
        raise NotWritten

    def claim(
        self,
        scope: str,
        handle: str,
        owner: str,
        ttl_ms: Any,
        max_messages: Any,
        now: int,
        /,
    ) -> Claim | None:
        """Lease the box to `owner` for `ttl_ms` milliseconds, or return None: nothing to hand out,
        or someone's lease is live. `max_messages` is None when the caller set no limit.
        Refuses `invalid_name`, `invalid_ttl`, `invalid_max`."""
        raise NotWritten

    def ack(self, scope: str, handle: str, owner: str, lease: str, up_to: Any, now: int, /) -> int:
        """Remove what this lease delivered with seq <= `up_to`, end the lease, and return how many
        messages went. Refuses `lease_not_held`."""
        raise NotWritten

    def release(self, scope: str, handle: str, owner: str, lease: str, now: int, /) -> None:
        """End the lease and leave its messages claimable. Refuses `lease_not_held`."""
        raise NotWritten

    def renew(
        self, scope: str, handle: str, owner: str, lease: str, ttl_ms: Any, now: int, /
    ) -> None:
        """Move the expiry to `now` + `ttl_ms`. Refuses `lease_not_held`, `invalid_ttl`."""
        raise NotWritten

    def peek(self, scope: str, handle: str, now: int, /) -> Iterable[Message]:
        """Return every message not yet acked, leased or not, and change nothing.
        Refuses `invalid_name`."""
        raise NotWritten

    def reap(self, now: int, /) -> None:
        """Housekeeping over the whole store. May not lose a message or free a live lease."""
        raise NotWritten

    def drop(self, scope: str, handle: str, now: int, /) -> int:
        """Remove the box's messages and its lease; return how many messages went. The next seq is
        still above all earlier ones. Refuses `invalid_name`."""
        raise NotWritten

    def tombstone(self, scope: str, handle: str, now: int, /) -> None:
        """Mark the recipient as being deleted: from here on `append` to it is refused."""
        raise NotWritten

    def close(self) -> None:
        """Let go of everything. A second call does nothing; every other call then raises
        (`Refused("closed")`, or whatever your store raises: it is sent as that refusal)."""
        raise NotWritten
