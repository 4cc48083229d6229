"""The contract's rules, held against each example store in this process, with a clock we move."""

from __future__ import annotations

import shutil
import unittest
from pathlib import Path
from typing import Any

import client  # noqa: F401  (puts the SDK and the examples on the path)

from memory_mailbox import MemoryMailbox
from sqlite_mailbox import SqliteMailbox, SqliteSubject
from storeproof_adapter import Claim, Mailbox, Message, Refused
from wall_mailbox import WallMailbox

SCOPE = "default"
SEQ_MAX = 2**53 - 1
TTL = 1000


class Rules:
    """Every rule that all three stores keep. `self.now` is the only clock."""

    store: Mailbox
    now: int

    def append(self: Any, *bodies: str, handle: str = "a") -> list[int]:
        return [self.store.append(SCOPE, handle, body, self.now) for body in bodies]

    def claim(
        self: Any, owner: str = "o", max: Any = None, ttl: Any = TTL, handle: str = "a"
    ) -> Any:
        return self.store.claim(SCOPE, handle, owner, ttl, max, self.now)

    def ack(
        self: Any, claim: Claim, up_to: int = SEQ_MAX, owner: str = "o", handle: str = "a"
    ) -> Any:
        return self.store.ack(SCOPE, handle, owner, claim.lease, up_to, self.now)

    def drain(self: Any, handle: str = "a") -> list[Message]:
        drained: list[Message] = []
        while True:
            claim = self.claim("drain", handle=handle)
            if claim is None:
                return drained
            self.assertTrue(claim.messages)
            drained.extend(claim.messages)
            self.ack(claim, owner="drain", handle=handle)

    def refused(self: Any, reason: str, function: Any, *arguments: Any, **options: Any) -> None:
        with self.assertRaises(Refused) as caught:
            function(*arguments, **options)
        self.assertEqual(caught.exception.reason, reason)

    def test_empty_claim_is_null_and_installs_nothing(self: Any) -> None:
        self.assertIsNone(self.claim("A"))
        (seq,) = self.append("x")
        self.assertEqual(list(self.claim("B").messages), [(seq, "x")])
        self.ack(self.claim("B") or self.fail("the holder lost its lease"), owner="B")
        self.assertIsNone(self.claim("A"))
        self.append("y")
        self.assertIsNotNone(self.claim("B"))

    def test_fifo_with_increasing_seqs(self: Any) -> None:
        bodies = [f"m{number}" for number in range(25)]
        seqs = self.append(*bodies)
        self.assertEqual(seqs, sorted(set(seqs)))
        self.assertTrue(1 <= seqs[0] and seqs[-1] <= SEQ_MAX)
        self.assertEqual(self.drain(), list(zip(seqs, bodies)))

    def test_a_live_lease_fences_until_expiry_and_not_after(self: Any) -> None:
        seqs = self.append("x", "y")
        first = self.claim("A")
        self.now += TTL - 1
        self.assertIsNone(self.claim("B"))
        self.now += 1
        second = self.claim("B")
        self.assertEqual([message.seq for message in second.messages], seqs)
        self.assertNotEqual(first.lease, second.lease)
        self.refused("lease_not_held", self.ack, first, owner="A")
        self.assertEqual(self.ack(second, owner="B"), 2)

    def test_an_expired_lease_acks_nothing_though_nobody_claimed(self: Any) -> None:
        self.append("x")
        claim = self.claim()
        self.now += TTL
        self.refused("lease_not_held", self.ack, claim)
        self.assertEqual(len(self.drain()), 1)

    def test_polling_in_vain_does_not_move_the_expiry(self: Any) -> None:
        self.append("x")
        self.claim("A")
        for _ in range(10):
            self.assertIsNone(self.claim("B"))
            self.now += TTL // 10
        self.assertIsNotNone(self.claim("B"))

    def test_the_holder_claiming_again_gets_its_same_lease(self: Any) -> None:
        self.append("x", "y")
        first = self.claim(max=1)
        self.append("z")
        again = self.claim(max=2)
        self.assertEqual((again.lease, list(again.messages)), (first.lease, list(first.messages)))

    def test_append_under_a_lease_waits_for_the_next(self: Any) -> None:
        self.append("x")
        claim = self.claim()
        (late,) = self.append("late")
        self.assertEqual(self.ack(claim, late), 1)
        self.assertEqual(self.drain(), [(late, "late")])

    def test_ack_in_the_middle_frees_the_rest_at_once(self: Any) -> None:
        first, second = self.append("x", "y")
        claim = self.claim()
        self.assertEqual(self.ack(claim, first), 1)
        self.assertEqual(self.drain(), [(second, "y")])

    def test_ack_beyond_the_delivered_takes_the_delivered_only(self: Any) -> None:
        _, second = self.append("x", "y")
        self.assertEqual(self.ack(self.claim(max=1), SEQ_MAX), 1)
        self.assertEqual(self.drain(), [(second, "y")])

    def test_ack_below_the_box_removes_nothing_and_settles(self: Any) -> None:
        (first,) = self.append("x")
        self.ack(self.claim())
        self.append("y")
        self.assertEqual(self.ack(self.claim("A"), first, owner="A"), 0)
        self.assertIsNotNone(self.claim("B"))

    def test_only_the_owner_of_the_live_lease_on_that_box_acks(self: Any) -> None:
        self.append("x")
        self.append("y", handle="b")
        claim = self.claim("A")
        other = self.claim("A", handle="b")
        self.refused("lease_not_held", self.ack, claim, owner="B")
        self.refused("lease_not_held", self.ack, Claim("made-up", []), owner="A")
        self.refused("lease_not_held", self.ack, claim, owner="A", handle="b")
        self.refused("lease_not_held", self.ack, claim, owner="A", handle="never")
        self.assertIsNone(self.claim("B"))
        self.assertEqual(self.ack(claim, owner="A"), 1)
        self.assertEqual(self.ack(other, owner="A", handle="b"), 1)

    def test_a_settled_lease_removes_nothing_more(self: Any) -> None:
        self.append("x", "y")
        settled = self.claim()
        self.ack(settled, 0)
        live = self.claim("B")
        try:
            self.assertEqual(self.ack(settled), 0)
        except Refused as no:
            self.assertEqual(no.reason, "lease_not_held")
        self.assertEqual(self.ack(live, owner="B"), 2)

    def test_reap_frees_the_dead_lease_and_nothing_else(self: Any) -> None:
        seqs = self.append("x", "y")
        claim = self.claim("A")
        self.store.reap(self.now)
        self.assertIsNone(self.claim("B"))
        self.now += TTL
        self.store.reap(self.now)
        self.refused("lease_not_held", self.ack, claim, owner="A")
        self.assertEqual([message.seq for message in self.drain()], seqs)
        self.assertGreater(self.append("z")[0], seqs[-1])

    def test_drop_empties_one_box_and_reuses_no_seq(self: Any) -> None:
        seqs = self.append("x", "y", "z")
        self.append("kept", handle="ab")
        claim = self.claim("A")
        self.assertEqual(self.store.drop(SCOPE, "a", self.now), 3)
        self.assertEqual(self.store.drop(SCOPE, "a", self.now), 0)
        self.assertIsNone(self.claim("B"))
        self.assertGreater(self.append("new")[0], seqs[-1])
        self.refused("lease_not_held", self.ack, claim, owner="A")
        self.assertEqual([message.body for message in self.drain()], ["new"])
        self.assertEqual([message.body for message in self.drain("ab")], ["kept"])

    def test_bad_input_is_refused_and_changes_nothing(self: Any) -> None:
        (seq,) = self.append("x")
        for scope, handle in [("", "a"), (SCOPE, "")]:
            self.refused("invalid_name", self.store.append, scope, handle, "y", self.now)
            self.refused("invalid_name", self.store.claim, scope, handle, "o", TTL, None, self.now)
            self.refused("invalid_name", self.store.drop, scope, handle, self.now)
        for ttl in (0, -1, 1.5, True, None, "10", [1]):
            self.refused("invalid_ttl", self.claim, ttl=ttl)
        for most in (0, -1, 1.5, True, "1", [1]):
            self.refused("invalid_max", self.claim, max=most)
        self.assertEqual(self.drain(), [(seq, "x")])

    def test_close_twice_then_every_call_is_refused(self: Any) -> None:
        self.append("x")
        self.store.close()
        self.store.close()
        self.refused("closed", self.append, "x")
        self.refused("closed", self.claim)
        self.refused("closed", self.ack, Claim("l", []))
        self.refused("closed", self.store.reap, self.now)
        self.refused("closed", self.store.drop, SCOPE, "a", self.now)


class RulesOfOptions(Rules):
    """Tenancy, peek, release, renew: kept by the memory and the sqlite store."""

    def test_scopes_and_odd_names_are_boxes_of_their_own(self: Any) -> None:
        pairs = [("a:b", "c"), ("a", "b:c"), ("a/b", "c"), ("a", "b/c"), ("a\0b", "c"), ("a", "c")]
        pairs += [("a\0", "c"), ("A", "c"), ("é", "c"), ("e\u0301", "c"), ("a ", "c"), ("..", "c")]
        pairs += [("1", "c"), ("1.0", "c"), ("__proto__", "c"), ("x" * 300 + "y", "c")]
        pairs += [("x" * 300 + "z", "c"), ("c", "a"), ("%00", "c"), ("\U0001f980", "c")]
        for number, (scope, handle) in enumerate(pairs):
            self.store.append(scope, handle, number, self.now)
        for number, (scope, handle) in enumerate(pairs):
            bodies = [message.body for message in self.store.peek(scope, handle, self.now)]
            self.assertEqual(bodies, [number], (scope, handle))

    def test_bodies_come_back_equal(self: Any) -> None:
        deep: Any = "leaf"
        for _ in range(64):
            deep = {"k": [deep]}
        bodies: list[Any] = [{}, [], "", None, True, False, SEQ_MAX, -0.5, 1e-7, "\0", "\u2028"]
        bodies += ["\U0001f980", "e\u0301", {"__proto__": 1, "": None}, deep, "x" * (1 << 20)]
        for body in bodies:
            self.store.append(SCOPE, "a", body, self.now)
        back = [message.body for message in self.drain()]
        self.assertEqual(back, bodies)
        self.assertEqual([type(body) for body in back], [type(body) for body in bodies])

    def test_peek_shows_all_and_changes_nothing(self: Any) -> None:
        seqs = self.append("x", "y")
        claim = self.claim(max=1)
        peeked = list(self.store.peek(SCOPE, "a", self.now))
        self.assertEqual(peeked, [(seqs[0], "x"), (seqs[1], "y")])
        self.assertEqual(list(self.store.peek(SCOPE, "never", self.now)), [])
        self.assertEqual(self.ack(claim), 1)
        self.refused("invalid_name", self.store.peek, "", "a", self.now)

    def test_release_by_the_holder_only(self: Any) -> None:
        self.append("x")
        lease = self.claim("A").lease
        self.refused("lease_not_held", self.store.release, SCOPE, "a", "B", lease, self.now)
        self.assertIsNone(self.claim("B"))
        self.store.release(SCOPE, "a", "A", lease, self.now)
        self.refused("lease_not_held", self.store.release, SCOPE, "a", "A", lease, self.now)
        self.assertIsNotNone(self.claim("B"))

    def test_renew_moves_the_expiry_for_the_holder_only(self: Any) -> None:
        self.append("x")
        renew, lease = self.store.renew, self.claim("A").lease
        self.now += TTL - 1
        self.refused("lease_not_held", renew, SCOPE, "a", "B", lease, 9 * TTL, self.now)
        self.refused("invalid_ttl", renew, SCOPE, "a", "A", lease, 0, self.now)
        renew(SCOPE, "a", "A", lease, TTL, self.now)
        self.now += TTL - 1
        self.assertIsNone(self.claim("B"))
        self.now += 1
        self.refused("lease_not_held", renew, SCOPE, "a", "A", lease, TTL, self.now)
        self.assertIsNotNone(self.claim("B"))


class Memory(RulesOfOptions, unittest.TestCase):
    def setUp(self) -> None:
        self.now = 1_700_000_000_000
        self.store = MemoryMailbox()


class Sqlite(RulesOfOptions, unittest.TestCase):
    def setUp(self) -> None:
        self.now = 1_700_000_000_000
        opened = SqliteSubject().open()
        assert isinstance(opened.store, SqliteMailbox) and opened.root is not None
        self.addCleanup(shutil.rmtree, opened.root)
        self.store, self.location, self.root = opened.store, opened.location, opened.root
        self.addCleanup(lambda: self.store.close())

    def reopen(self) -> None:
        self.store.close()
        self.store = SqliteSubject().attach(self.location)

    def test_messages_seqs_and_leases_survive_reopen(self) -> None:
        seqs = self.append("x", "y", "z")
        claim = self.claim("A", max=2)
        self.reopen()
        self.assertIsNone(self.claim("B"))
        self.assertEqual(self.claim("A"), claim)
        self.assertEqual(self.ack(claim, owner="A"), 2)
        self.assertEqual(self.drain(), [(seqs[2], "z")])
        self.reopen()
        self.store.drop(SCOPE, "a", self.now)
        self.reopen()
        self.assertGreater(self.append("w")[0], seqs[-1])

    def test_a_tombstone_refuses_append_and_nothing_else(self) -> None:
        self.append("x")
        claim = self.claim("A")
        for handle in ("a", "empty"):
            self.store.tombstone(SCOPE, handle, self.now)
            self.store.tombstone(SCOPE, handle, self.now)
            self.refused("recipient_deleted", self.append, "y", handle=handle)
        self.reopen()
        self.refused("recipient_deleted", self.append, "y")
        self.assertIsNone(self.claim("B"))
        self.store.renew(SCOPE, "a", "A", claim.lease, TTL, self.now)
        self.assertEqual(self.ack(claim, owner="A"), 1)
        self.assertIsNone(self.claim("A", handle="empty"))
        self.append("y", handle="ab")
        self.store.append("other", "a", "y", self.now)

    def test_destroy_removes_only_what_was_opened_here(self) -> None:
        with self.assertRaises(ValueError):
            SqliteSubject().destroy(str(Path(client.__file__)))
        other = SqliteSubject().open()
        assert isinstance(other.store, SqliteMailbox) and other.root is not None
        other.store.close()
        SqliteSubject().destroy(other.location)
        self.assertFalse(Path(other.root).exists())
        self.assertTrue(Path(self.root).exists())
        with self.assertRaises(Exception):
            SqliteSubject().attach(other.location)


class Wall(Rules, unittest.TestCase):
    def setUp(self) -> None:
        self.now = 1_700_000_000_000
        self.store = WallMailbox(clock_s=lambda: self.now / 1000)

    def test_its_own_refusals_and_its_cap(self) -> None:
        self.refused("invalid_body", self.append, {"an": "object"})
        self.refused("invalid_body", self.append, "é")
        self.refused("too_large", self.append, "x" * 1025)
        self.refused("invalid_name", self.append, "x", handle="A")
        self.refused("invalid_name", self.append, "x", handle="a\n")
        self.refused("invalid_name", self.append, "x", handle="a" * 17)
        self.append("x" * 1024, "y", "z")
        self.assertEqual(len(self.claim(max=3).messages), 2)


if __name__ == "__main__":
    unittest.main()
