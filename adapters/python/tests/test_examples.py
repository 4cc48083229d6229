"""The examples as child processes: declarations, each method over the wire, several at once."""

from __future__ import annotations

import threading
import unittest
from pathlib import Path
from typing import Any

from client import EXAMPLES, Child, WireError

NOW = 1_700_000_000_000
OPTIONAL = {"tenancy", "peek", "release", "renew"}
DURABLE = {"durable", "crossProcessSafe", "tombstone"}


class ExampleTest(unittest.TestCase):
    def start(self, name: str) -> Child:
        child = Child(EXAMPLES / f"{name}_mailbox.py")
        self.addCleanup(child.kill)
        return child

    def declared(self, child: Child) -> dict[str, Any]:
        answer = child.call("initialize", protocol="1", kit="1.0", run={"seed": 0})
        self.assertEqual(answer["pid"], child.process.pid)
        return dict(answer["capabilities"])

    def refused(self, reason: str, child: Child, method: str, **params: Any) -> None:
        with self.assertRaises(WireError) as caught:
            child.call(method, **params)
        self.assertEqual(caught.exception.reason, reason, caught.exception)


class Examples(ExampleTest):
    def test_each_declares_just_what_it_has(self) -> None:
        caller = {"mailbox": True, "clock": "caller"}
        for name, expected in [
            ("memory", {**caller, **dict.fromkeys(OPTIONAL, True)}),
            ("sqlite", {**caller, **dict.fromkeys(OPTIONAL | DURABLE, True)}),
            ("wall", {"mailbox": True, "clock": "wall"}),
        ]:
            with self.subTest(name):
                self.assertEqual(self.declared(self.start(name)), expected)

    def test_every_method_over_the_wire(self) -> None:
        for name in ("memory", "sqlite"):
            with self.subTest(name):
                self.every_method(self.start(name))

    def every_method(self, child: Child) -> None:
        call, declared = child.call, self.declared(child)
        store = {"store": child.open()["store"], "now": NOW}
        box = {**store, "scope": "default", "handle": "a"}
        self.assertEqual(call("mailbox/append", **box, body={"n": 1}), {"seq": 1})
        self.assertEqual(call("mailbox/append", **box, body="two"), {"seq": 2})
        held = call("mailbox/claim", **box, owner="A", ttlMs=50, max=1)
        self.assertEqual(held["messages"], [{"seq": 1, "body": {"n": 1}}])
        self.assertIsNone(call("mailbox/claim", **box, owner="B", ttlMs=50))
        mine = {**box, "owner": "A", "lease": held["lease"]}
        self.assertEqual(call("mailbox/renew", **mine, ttlMs=90), {})
        self.assertEqual(len(call("mailbox/peek", **box)["messages"]), 2)
        self.assertEqual(call("mailbox/release", **mine), {})
        self.refused("lease_not_held", child, "mailbox/ack", **mine, upTo=2)
        self.refused("invalid_ttl", child, "mailbox/claim", **box, owner="A", ttlMs="soon")
        self.refused("invalid_max", child, "mailbox/claim", **box, owner="A", ttlMs=1, max=0)
        self.refused("invalid_name", child, "mailbox/append", **{**box, "scope": ""}, body=1)
        mine["lease"] = call("mailbox/claim", **box, owner="A", ttlMs=50)["lease"]
        self.assertEqual(call("mailbox/ack", **mine, upTo=1), {"acked": 1})
        self.assertEqual(call("mailbox/reap", **store), {})
        self.assertEqual(call("mailbox/drop", **box), {"dropped": 1})
        if declared.get("tombstone"):
            self.assertEqual(call("recipient/tombstone", **box), {})
            self.refused("recipient_deleted", child, "mailbox/append", **box, body=1)
        self.assertEqual(call("store/close", store=store["store"]), {})
        self.assertEqual(call("store/close", store=store["store"]), {})
        self.refused("closed", child, "mailbox/append", **box, body=1)
        self.refused("closed", child, "mailbox/claim", **box, owner="A", ttlMs=50)
        self.assertEqual(call("shutdown"), {})
        self.assertEqual(child.exit_status(), 0)
        self.assertEqual(child.stderr(), "")

    def test_wall_store_on_the_real_clock(self) -> None:
        child = self.start("wall")
        box = {"store": child.open()["store"], "scope": "default", "handle": "a", "now": NOW}
        child.call("mailbox/append", **box, body="x")
        self.assertIsNotNone(child.call("mailbox/claim", **box, owner="A", ttlMs=600))
        self.assertIsNone(child.call("mailbox/claim", **box, owner="B", ttlMs=600))
        threading.Event().wait(0.65)
        self.assertIsNotNone(child.call("mailbox/claim", **box, owner="B", ttlMs=600))


class SqliteAcrossProcesses(ExampleTest):
    def setUp(self) -> None:
        self.one, self.two = self.start("sqlite"), self.start("sqlite")
        opened = self.one.open()
        self.location = opened["location"]
        self.root = Path(opened["root"])
        self.addCleanup(self.destroy)
        peer = self.two.call("store/attach", location=self.location)
        box = {"scope": "default", "handle": "a", "now": NOW}
        self.box = {self.one: {**box, **{"store": opened["store"]}}, self.two: {**box, **peer}}

    def destroy(self) -> None:
        with Child(EXAMPLES / "sqlite_mailbox.py") as child:
            child.call("store/destroy", location=self.location)
        self.assertFalse(self.root.exists())

    def on(self, child: Child, op: str, **params: Any) -> Any:
        return child.call(f"mailbox/{op}", **{**self.box[child], **params})

    def test_both_append_at_full_speed(self) -> None:
        receipts: dict[Child, list[int]] = {self.one: [], self.two: []}

        def run(child: Child) -> None:
            for number in range(100):
                body = f"{child.process.pid} {number}"
                receipts[child].append(self.on(child, "append", body=body)["seq"])

        threads = [threading.Thread(target=run, args=(child,)) for child in receipts]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        for minted in receipts.values():
            self.assertEqual(minted, sorted(minted))
        peeked = [message["seq"] for message in self.on(self.one, "peek")["messages"]]
        self.assertEqual(len(peeked), 200)
        self.assertEqual(sorted(receipts[self.one] + receipts[self.two]), peeked)

    def test_leases_acks_and_drops_are_seen_by_the_other(self) -> None:
        for body in "xyz":
            self.on(self.one, "append", body=body)
        held = self.on(self.two, "claim", owner="B", ttlMs=100, max=2)
        self.assertIsNone(self.on(self.one, "claim", owner="A", ttlMs=100))
        lease = held["lease"]
        with self.assertRaises(WireError):
            self.on(self.one, "ack", owner="A", lease=lease, upTo=9)
        self.assertEqual(self.on(self.one, "ack", owner="B", lease=lease, upTo=9), {"acked": 2})
        self.assertEqual(self.on(self.two, "drop"), {"dropped": 1})
        self.assertIsNone(self.on(self.one, "claim", owner="A", ttlMs=100))
        self.assertEqual(self.on(self.one, "append", body="w"), {"seq": 4})

    def test_what_was_receipted_survives_kill_9(self) -> None:
        receipts: list[int] = []

        def run() -> None:
            try:
                while True:
                    receipts.append(self.on(self.two, "append", body="x")["seq"])
            except (OSError, ValueError):
                return  # The pipe is gone: the child was killed.

        self.assertEqual(self.on(self.two, "append", body="first"), {"seq": 1})
        self.on(self.two, "claim", owner="B", ttlMs=100)
        thread = threading.Thread(target=run)
        thread.start()
        threading.Event().wait(0.2)
        self.two.process.kill()
        thread.join()
        self.assertTrue(receipts)
        found = [message["seq"] for message in self.on(self.one, "peek")["messages"]]
        self.assertEqual(found[: len(receipts) + 1], [1, *receipts])
        self.assertIsNone(self.on(self.one, "claim", owner="A", ttlMs=100))
        self.assertIsNotNone(self.on(self.one, "claim", owner="A", ttlMs=100, now=NOW + 100))
        self.assertGreater(self.on(self.one, "append", body="y")["seq"], found[-1])


if __name__ == "__main__":
    unittest.main()
