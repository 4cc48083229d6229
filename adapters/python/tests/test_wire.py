"""What holds on the wire whatever the author's code does: driven through `odd_subject.py`."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import unittest
from typing import Any, ClassVar

from client import EXAMPLES, ODD, Child, WireError

NOW = 1_700_000_000_000


class OddTest(unittest.TestCase):
    """A store of its own for each test; the child is shared until a test ends it."""

    child: ClassVar[Child]

    @classmethod
    def setUpClass(cls) -> None:
        cls.child = Child(ODD)

    @classmethod
    def tearDownClass(cls) -> None:
        cls.child.kill()

    def setUp(self) -> None:
        if self.child.process.poll() is not None:
            self.child.kill()
            type(self).child = Child(ODD)
        self.store: str = self.child.open()["store"]

    def append(self, body: Any) -> Any:
        return self.mailbox("append", body=body)["seq"]

    def mailbox(self, op: str, **params: Any) -> Any:
        box = {"store": self.store, "scope": "default", "handle": "a", "now": NOW}
        return self.child.call(f"mailbox/{op}", **{**box, **params})

    def claim(self) -> Any:
        return self.mailbox("claim", owner="o", ttlMs=10)

    def refused(self, code: int, call: Any, *arguments: Any, **params: Any) -> WireError:
        with self.assertRaises(WireError) as caught:
            call(*arguments, **params)
        self.assertEqual(caught.exception.code, code, caught.exception)
        return caught.exception

    def still_serves(self) -> None:
        self.assertEqual(self.append("fine"), 1)


class Handshake(OddTest):
    def test_declares_what_the_author_declared(self) -> None:
        answer = self.child.call("initialize", protocol="1", kit="1.0", run={"seed": 1})
        self.assertEqual(answer["protocol"], "1")
        self.assertEqual(answer["kit"], "1.0")
        self.assertEqual(answer["pid"], self.child.process.pid)
        about = {"name": "odd", "version": "0.1", "language": "python"}
        self.assertEqual(answer["subject"], {**about, "homepage": "https://example.org/odd"})
        capabilities: dict[str, Any] = dict.fromkeys(
            ("mailbox", "peek", "renew", "concurrent", "memory"), True
        )
        capabilities.update(clock="caller", bundle=["bundle/hash"])
        self.assertEqual(answer["capabilities"], capabilities)
        self.assertEqual(answer["limits"], {"leaseGranularityMs": 5})
        self.assertEqual(answer["faces"], [{"name": "notes", "kind": "list", "reopen": True}])
        self.assertEqual(answer["server"], {"restart": "true"})

    def test_another_major_is_answered_with_its_own_version(self) -> None:
        answer = self.child.call("initialize", protocol="2", kit="9.0")
        self.assertEqual((answer["protocol"], answer["kit"]), ("1", "1.0"))

    def test_open_hands_on_location_and_root(self) -> None:
        opened = self.child.open()
        self.assertEqual(opened["location"], {"n": [1]})
        self.assertEqual(opened["root"], "/nowhere")
        self.assertNotEqual(opened["store"], self.store)


class Endings(OddTest):
    def test_shutdown_answers_then_the_child_exits(self) -> None:
        self.assertEqual(self.child.call("shutdown"), {})
        self.assertEqual(self.child.line(), b"")
        self.assertEqual(self.child.exit_status(), 0)
        self.assertEqual(self.child.stderr().count("shut down"), 1)

    def test_end_of_input_is_a_clean_exit(self) -> None:
        self.assertEqual(self.child.end_of_input(), 0)
        self.assertEqual(self.child.line(), b"")
        self.assertNotIn("Traceback", self.child.stderr())

    def test_a_line_without_its_end_is_dropped(self) -> None:
        self.child.send(b'{"jsonrpc":"2.0","id":1,"method":"initialize"}')
        self.assertEqual(self.child.end_of_input(), 0)
        self.assertEqual(self.child.line(), b"")
        self.assertIn("ended inside a line", self.child.stderr())

    def test_interrupt_ends_it_without_a_traceback(self) -> None:
        self.child.process.send_signal(signal.SIGINT)
        self.assertEqual(self.child.exit_status(), -signal.SIGINT)
        self.assertNotIn("Traceback", self.child.stderr())

    def test_a_bench_that_went_away_is_no_traceback(self) -> None:
        reader, writer = os.pipe()
        process = subprocess.Popen(
            [sys.executable, str(EXAMPLES / "memory_mailbox.py")],
            stdin=subprocess.PIPE,
            stdout=writer,
            stderr=subprocess.PIPE,
        )
        os.close(writer)
        os.close(reader)
        request = b'{"jsonrpc":"2.0","id":1,"method":"initialize"}\n'
        _, log = process.communicate(request, timeout=10)
        self.assertEqual(process.returncode, 0)
        self.assertNotIn(b"Traceback", log)


class Stdout(OddTest):
    def test_prints_never_reach_the_protocol(self) -> None:
        self.assertEqual(self.append("print"), 1)
        self.still_serves()
        self.assertEqual(self.child.end_of_input(), 0)
        self.assertEqual(self.child.line(), b"", "a line too many on stdout")
        log = self.child.stderr()
        for told in ("a banner before serve", "from print", "from the first stdout"):
            self.assertIn(told, log)
        for told in ("from descriptor 1", "from C", "from a child process"):
            self.assertIn(told, log)

    def test_author_code_cannot_eat_requests(self) -> None:
        self.assertEqual(self.append("read stdin"), 1)
        self.still_serves()


class Requests(OddTest):
    def error(self, line: bytes) -> tuple[Any, int]:
        answer = self.child.ask_raw(line)
        return answer["id"], answer["error"]["code"]

    def test_lines_that_are_no_json(self) -> None:
        bad = [b"{not json\n", b"\xff\xfe\n", b'\xef\xbb\xbf{"id":1}\n', b'{"id":1} {}\n']
        bad += [b'{"jsonrpc":"2.0","id":1,"method":"shutdown","params":{"n":NaN}}\n']
        bad += [b'{"jsonrpc":"2.0","id":1,"method":"shutdown","params":{"n":1e999}}\n']
        bad += [b'{"jsonrpc":"2.0","id":1,"method":"shutdown","params":{"n":"\\ud800"}}\n']
        bad += [b'{"jsonrpc":"2.0","id":1,"method":"shutdown","params":' + b"[" * 200_000 + b"\n"]
        for line in bad:
            with self.subTest(line[:60]):
                self.assertEqual(self.error(line), (None, -32700))
        self.still_serves()

    def test_json_that_is_no_request(self) -> None:
        values: list[Any] = [[], None, 1, "x", {}, {"jsonrpc": "2.0"}, {"id": None, "method": "x"}]
        for value in values:
            with self.subTest(value):
                self.assertEqual(self.child.ask(value)["error"]["code"], -32600)
        no_version = {"id": 5, "method": "shutdown"}
        self.assertEqual(self.error(json.dumps(no_version).encode() + b"\n"), (5, -32600))
        text_id = {"jsonrpc": "2.0", "id": "7", "method": "shutdown"}
        self.assertEqual(self.error(json.dumps(text_id).encode() + b"\n"), (None, -32600))
        array = {"jsonrpc": "2.0", "id": 6, "method": "shutdown", "params": []}
        self.assertEqual(self.error(json.dumps(array).encode() + b"\n"), (6, -32602))
        self.still_serves()

    def test_crlf_blank_lines_and_notifications_are_tolerated(self) -> None:
        self.child.send(b'\r\n \n{"jsonrpc":"2.0","method":"shutdown"}\n')
        answer = self.child.ask_raw(b'{"jsonrpc":"2.0","id":3,"method":"initialize","x":1}\r\n')
        self.assertEqual(answer["id"], 3)

    def test_params_are_checked_before_the_author_sees_them(self) -> None:
        box = {"store": self.store, "scope": "s", "handle": "h", "body": 1, "now": NOW}
        for name, value in [("scope", 1), ("handle", None), ("now", True), ("now", 1.5)]:
            self.refused(-32602, self.child.call, "mailbox/append", **{**box, name: value})
        self.refused(-32602, self.child.call, "mailbox/append", **{**box, "store": 1})
        for name in box:
            without = {key: value for key, value in box.items() if key != name}
            self.refused(-32602, self.child.call, "mailbox/append", **without)
        self.refused(-32602, self.mailbox, "ack", owner="o", lease="l", upTo=False)

    def test_methods_not_declared_or_not_written(self) -> None:
        undeclared = self.refused(-32601, self.mailbox, "release", owner="o", lease="l")
        self.assertIn("release is not declared", undeclared.message)
        unwritten = self.refused(-32601, self.mailbox, "peek")
        self.assertIn("the author's class has no such method", unwritten.message)
        self.refused(-32601, self.child.call, "recipient/tombstone")
        self.refused(-32601, self.child.call, "store/attach", location="x")
        self.refused(-32601, self.child.call, "store/destroy", location="x")
        self.refused(-32601, self.child.call, "mailbox/steal")


class Answers(OddTest):
    def test_a_refusal_carries_its_reason_and_data(self) -> None:
        body = {"refuse": "bad_package", "message": "cut short", "data": {"code": "not-json"}}
        no = self.refused(-32001, self.append, body)
        self.assertEqual(no.message, "cut short")
        self.assertEqual(no.data, {"reason": "bad_package", "code": "not-json"})

    def test_a_refusal_that_json_cannot_carry_is_a_fault(self) -> None:
        body = {"refuse": "odd", "data": {"nan": "x"}}
        self.assertEqual(self.refused(-32001, self.append, body).reason, "odd")
        empty = self.refused(-32603, self.append, {"refuse": ""})
        self.assertIn("reason code", empty.message)

    def test_any_other_exception_is_a_fault_with_its_words(self) -> None:
        fault = self.refused(-32603, self.append, "raise")
        self.assertIn("ValueError: the disk \\udc80 is on fire", fault.message)
        self.assertIn("SystemExit: 7", self.refused(-32603, self.append, "exit").message)
        self.assertIn("Unprintable", self.refused(-32603, self.append, "unprintable").message)
        self.still_serves()
        self.child.end_of_input()
        self.assertIn("Traceback", self.child.stderr())

    def test_answers_without_a_form_are_faults_that_say_what_to_return(self) -> None:
        for body in ("none", "true"):
            told = self.refused(-32603, self.append, body).message
            self.assertIn("append returns the seq", told)
        told = self.refused(-32603, self.mailbox, "renew", owner="o", lease="l", ttlMs=1).message
        self.assertIn("raise Refused", told)
        for given, words in [
            ("list", "None or Claim(lease, messages), not list"),
            ("dicts", "Message(seq, body), not dict"),
            ("false", "None or Claim(lease, messages), not bool"),
            ("nan", "not JSON compliant"),
            ("infinity", "not JSON compliant"),
            ("surrogate", "lone surrogate"),
            ("bytes", "not JSON serializable"),
        ]:
            with self.subTest(given):
                self.mailbox("drop", handle=given)
                self.assertIn(words, self.refused(-32603, self.claim).message)
        self.still_serves()

    def test_an_empty_delivery_reaches_the_bench_and_is_noted_once(self) -> None:
        self.mailbox("drop", handle="empty")
        for _ in range(2):
            self.assertEqual(self.claim(), {"lease": "l", "messages": []})
        self.child.end_of_input()
        self.assertEqual(self.child.stderr().count("return None when there is nothing"), 1)

    def test_numbers_and_leases_that_break_the_contract_reach_the_bench(self) -> None:
        self.mailbox("drop", handle="numbers")
        claim = self.claim()
        self.assertEqual(claim["lease"], "")
        self.assertEqual([message["seq"] for message in claim["messages"]], [0, -7, 1.5])

    def test_text_survives_any_locale(self) -> None:
        text = "\u2028\u2029 é e\u0301 \U0001f980 \x00 \x7f \ufeff \uffff"
        box = {"scope": "default", "handle": text, "now": NOW}
        for locale in ("C", "C.UTF-8"):
            environment = {"LC_ALL": locale, "PYTHONIOENCODING": "latin-1", "PYTHONUTF8": "0"}
            with self.subTest(locale), Child(ODD, **environment) as child:
                store = child.open()["store"]
                child.call("mailbox/drop", store=store, **box)
                claim = child.call("mailbox/claim", store=store, **box, owner="o", ttlMs=1)
                self.assertEqual(claim["messages"][0]["body"], text)


class Closing(OddTest):
    def test_unknown_store_is_closed(self) -> None:
        self.store = "store-99"
        self.assertEqual(self.refused(-32001, self.append, "x").reason, "closed")
        closing = self.refused(-32001, self.child.call, "store/close", store="store-99")
        self.assertEqual(closing.reason, "closed")

    def test_a_closed_store_answers_for_itself(self) -> None:
        for _ in range(2):
            self.assertEqual(self.child.call("store/close", store=self.store), {})
        # Raising of any kind is the refusal; a store that goes on answering is shown to do so.
        self.assertEqual(self.refused(-32001, self.mailbox, "reap").reason, "closed")
        self.assertEqual(self.append("x"), 1)

    def test_null_from_a_closed_store_reaches_the_bench(self) -> None:
        self.mailbox("drop", handle="null")
        self.child.call("store/close", store=self.store)
        self.assertIsNone(self.claim())

    def test_a_second_close_is_the_stores_own(self) -> None:
        self.mailbox("drop", handle="close once")
        self.assertEqual(self.child.call("store/close", store=self.store), {})
        again = self.refused(-32001, self.child.call, "store/close", store=self.store)
        self.assertEqual(again.reason, "closed")

    def test_a_registered_method_reaches_a_closed_store(self) -> None:
        self.child.call("store/close", store=self.store)
        self.assertEqual(self.child.call("memory/put", store=self.store, entry={}), {})

    def test_of_many_closed_stores_old_ones_are_let_go(self) -> None:
        first = self.store
        for _ in range(70):
            self.child.call("store/close", store=self.store)
            self.store = self.child.open()["store"]
        self.assertEqual(self.child.call("store/close", store=first), {})
        self.store = first
        self.assertEqual(self.refused(-32001, self.append, "x").reason, "closed")


class Registered(OddTest):
    def test_methods_by_full_name(self) -> None:
        call = self.child.call
        self.assertEqual(call("memory/put", store=self.store, entry={"id": 1}), {})
        entries = call("memory/list", store=self.store)["entries"]
        self.assertEqual(entries, [["OddMailbox", {"id": 1}]])
        closed = self.refused(-32001, call, "memory/put", store="store-9", entry={})
        self.assertEqual(closed.reason, "closed")
        self.refused(-32602, call, "memory/put", entry={})
        self.assertEqual(call("memory/delete", id="nothing"), {})
        self.assertIn("as a dict", self.refused(-32603, call, "memory/delete", id="list").message)

    def test_only_what_is_declared(self) -> None:
        self.assertEqual(self.child.call("bundle/hash"), {"hash": "00"})
        self.refused(-32601, self.child.call, "bundle/validate")
        self.refused(-32601, self.child.call, "rules/constants")
        self.refused(-32601, self.child.call, "memory/export")

    def test_throwing_is_an_answer_of_a_face(self) -> None:
        for name in ("face/read", "face/seed", "face/reopen"):
            threw = self.refused(-32001, self.child.call, name, subject="s")
            self.assertEqual((threw.reason, threw.message), ("threw", "KeyError: 'torn'"))
        threw = self.refused(-32001, self.child.call, "face/read", subject="exit")
        self.assertEqual(threw.message, "SystemExit: torn")
        own = self.refused(-32001, self.child.call, "face/read", subject="refusing")
        self.assertEqual(own.reason, "corrupt")
        self.refused(-32603, self.child.call, "face/open", subject="s")

    def test_what_a_face_cannot_write_is_no_answer(self) -> None:
        for subject in ("nan", "list", "bare"):
            self.refused(-32700, self.child.call, "face/read", subject=subject)


class Threads(unittest.TestCase):
    def test_calls_overlap_and_all_are_answered_before_shutdown(self) -> None:
        with Child(ODD, "4") as child:
            store = child.open()["store"]
            box = {"store": store, "scope": "s", "handle": "h", "body": "meet", "now": NOW}
            for number in range(1, 5):
                request = {"jsonrpc": "2.0", "id": number, "method": "mailbox/append"}
                child.send(json.dumps({**request, "params": box}).encode() + b"\n")
            child.send(b'{"jsonrpc":"2.0","id":9,"method":"shutdown"}\n')
            answers = [json.loads(child.line()) for _ in range(5)]
            self.assertTrue(all("result" in answer for answer in answers), answers)
            ids = [answer["id"] for answer in answers]
            self.assertEqual((sorted(ids), ids[-1]), ([1, 2, 3, 4, 9], 9))
            self.assertEqual(child.exit_status(), 0)


class Sizes(OddTest):
    def line(self, store: str, op: str, body: str, handle: str = "a") -> bytes:
        head = f'{{"jsonrpc":"2.0","id":1,"method":"mailbox/{op}","params":{{"store":"{store}",'
        box = f'"scope":"default","handle":"{handle}","owner":"o","ttlMs":9,"now":1,'
        return f'{head}{box}"body":{body}}}}}\n'.encode()

    def test_depth_1000_and_1100_levels_in_all(self) -> None:
        for name in ("memory", "sqlite"):
            with Child(EXAMPLES / f"{name}_mailbox.py") as child:
                store = child.open()["store"]
                for depth, opening, middle, closing in [
                    (1000, "[", "[]", "]"),
                    (1000, '{"k":', "{}", "}"),
                    (1095, "[", "[]", "]"),
                ]:
                    body = opening * (depth - 1) + middle + closing * (depth - 1)
                    self.assertIn("result", child.ask_raw(self.line(store, "append", body)))
                    child.send(self.line(store, "peek", "0"))
                    self.assertIn(body.encode(), child.line())

    def test_a_line_of_64_mib(self) -> None:
        body = "x" * (64 << 20)
        self.child.send(self.line(self.store, "drop", "0", handle=body))
        self.assertIn(b"dropped", self.child.line())
        self.child.send(self.line(self.store, "claim", "0"))
        self.assertIn(body.encode(), self.child.line())


class Pieces(OddTest):
    def test_a_character_cut_by_the_pipe(self) -> None:
        request = {"jsonrpc": "2.0", "id": 1, "method": "mailbox/drop"}
        params = {"store": self.store, "scope": "s", "handle": "é🦀\u2028", "now": 1}
        line = json.dumps({**request, "params": params}, ensure_ascii=False).encode() + b"\n"
        def feed() -> None:
            for index in range(len(line)):
                self.child.send(line[index : index + 1])

        feeder = threading.Thread(target=feed)
        feeder.start()
        self.assertEqual(json.loads(self.child.line())["result"], {"dropped": 0})
        feeder.join()
        self.assertEqual(self.claim()["messages"][0]["body"], "é🦀\u2028")


if __name__ == "__main__":
    unittest.main()
