// The pure parts: line splitting, JSON in and out, refusals.

import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { Refused } from "../index.mjs";
import { decode, encode, wellFormed } from "../lib/json.mjs";
import { LineSplitter } from "../lib/lines.mjs";
import { checkSubject } from "../lib/subject.mjs";
import { nested } from "../test-support/wire.mjs";

const MIB = 1024 * 1024;

describe("LineSplitter", () => {
  const text = "a\n\n\u20ac\u2028\ud83d\ude80\r\nrest";
  const lines = ["a", "", "\u20ac\u2028\ud83d\ude80\r"];

  test("gives the same lines however the bytes are cut", () => {
    const bytes = Buffer.from(text);
    for (let size = 1; size <= bytes.length; size += 1) {
      const splitter = new LineSplitter();
      const seen = [];
      for (let at = 0; at < bytes.length; at += size) seen.push(...splitter.push(bytes.subarray(at, at + size)));
      assert.deepEqual(seen.map(String), lines, `chunks of ${size}`);
      assert.equal(splitter.pending, 4);
    }
  });

  test("a 64 MiB line in 16 KiB chunks takes linear time", () => {
    const splitter = new LineSplitter();
    const chunk = Buffer.alloc(16 * 1024, "x");
    const start = performance.now();
    for (let sent = 0; sent < 64 * MIB; sent += chunk.length) assert.equal(splitter.push(chunk).length, 0);
    const [line] = splitter.push(Buffer.from("\n"));
    assert.equal(line.length, 64 * MIB);
    // Joining at each chunk would copy 128 GiB; one join takes well under a second.
    assert.ok(performance.now() - start < 5000);
  });
});

describe("JSON", () => {
  test("1,100 levels of lists and of objects go in and out", () => {
    let object = 1;
    for (let level = 0; level < 1100; level += 1) object = { k: object };
    for (const value of [nested(1100), object]) {
      const text = JSON.stringify(value);
      assert.equal(encode(decode(Buffer.from(text))), text);
    }
  });

  test("what cannot be written is refused, not bent", () => {
    const circle = {};
    circle.self = circle;
    for (const value of [NaN, -Infinity, 1n, circle, [undefined], { f() {} }, [Symbol("s")], new Set(), "\udfff", nested(1_000_000)]) {
      assert.throws(() => encode({ value }), { name: "AnswerFault" });
    }
  });

  test("an absent member is left out; toJSON, pairs and escapes are left alone", () => {
    assert.equal(encode({ a: undefined, b: new Date(0) }), '{"b":"1970-01-01T00:00:00.000Z"}');
    assert.equal(encode("\ud83d\ude80 \\ud800"), '"\ud83d\ude80 \\\\ud800"');
  });

  test("error text is made well-formed", () => {
    assert.equal(wellFormed("a\ud800b\ud83d\ude80\udc00"), "a\ufffdb\ud83d\ude80\ufffd");
  });
});

test("a Refused needs a reason code", () => {
  assert.equal(new Refused("lease_not_held").message, "lease_not_held");
  assert.throws(() => new Refused(), /needs a reason code/);
  assert.throws(() => new Refused(""), /needs a reason code/);
});

test("a declaration is checked member by member", () => {
  const good = { name: "n", version: "1", capabilities: {} };
  checkSubject({
    ...good,
    capabilities: { queue: { ids: "string" }, bundle: ["bundle/hash"], memory: true, clock: "wall", peek: false },
    faces: [{ name: "f", kind: "list" }],
    methods: { "bundle/hash"() {} },
  });
  for (const [members, words] of [
    [{ name: "" }, /subject\.name/],
    [{ version: 1 }, /subject\.version/],
    [{ capabilities: undefined }, /subject\.capabilities/],
    [{ capabilities: { crossProcesSafe: true } }, /crossProcesSafe is no capability/],
    [{ capabilities: { mailbox: true, queue: {} } }, /not both/],
    [{ capabilities: { durable: "yes" } }, /durable must be true or false/],
    [{ capabilities: { memory: [1] } }, /memory must be true or a list/],
    [{ capabilities: { clock: "moon" } }, /clock must be/],
    [{ faces: [{ name: "f", kind: "row" }] }, /kind must be/],
    [{ methods: { "mailbox/append"() {} } }, /the SDK serves this one/],
    [{ methods: { hash() {} } }, /a full name looks like/],
    [{ methods: { "bundle/hash": 1 } }, /must be a function/],
    [{ attach: 5 }, /subject\.attach must be a function/],
  ]) {
    assert.throws(() => checkSubject({ ...good, ...members }), words);
  }
});
