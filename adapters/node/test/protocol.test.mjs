// The SDK on the wire: framing, order, refusals, faults, and the end of a conversation.

import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import fs from "node:fs";
import os from "node:os";
import path from "node:path";
import { after, before, describe, test } from "node:test";
import { fileURLToPath } from "node:url";
import { bodies, Box, Child, EXAMPLES, FIXTURES, nested } from "../test-support/wire.mjs";

const MIB = 1024 * 1024;

describe("a well-behaved store", () => {
  let child;
  let box;
  before(async () => {
    child = new Child("memory-mailbox.mjs");
    box = await Box.open(child);
  });
  after(() => child.shutdown());

  /** Appends a body to a fresh box and claims it back. */
  async function roundTrip(body) {
    const fresh = box.sibling({ handle: `trip${Math.trunc(performance.now() * 1000)}` });
    await fresh.append(body);
    return bodies(await fresh.claim("A"))[0];
  }

  test("introduces itself with its own versions, whatever the harness speaks", async () => {
    for (const protocol of ["1", "9"]) {
      const hello = await child.call("initialize", {
        protocol, kit: "1.0", harness: { name: "test", version: "0" }, run: { seed: 7 }, later: true,
      });
      assert.deepEqual(hello, {
        protocol: "1",
        kit: "1.0",
        subject: { name: "memory-mailbox", version: "1.0.0", language: "javascript" },
        pid: child.process.pid,
        capabilities: { mailbox: true, tenancy: true, peek: true, release: true, renew: true, clock: "caller" },
      });
    }
  });

  test("bodies come back as they went", async () => {
    const body = {
      text: "line\u2028para\u2029 \u0000 \ud83d\ude80 e\u0301 \r\n",
      numbers: [9007199254740991, -0.5, 1e-7, 0],
      empty: [{}, [], "", null, false],
      "": 1,
    };
    assert.deepEqual(await roundTrip(body), body);
  });

  test("a __proto__ member stays an ordinary member", async () => {
    const text = '{"__proto__":{"polluted":true},"constructor":1,"a":{"__proto__":null}}';
    assert.equal(JSON.stringify(await roundTrip(JSON.parse(text))), text);
    assert.equal({}.polluted, undefined);
  });

  test("a body of 8 MiB comes back", async () => {
    const big = "\u20ac".repeat((8 * MIB) / 3);
    assert.ok((await roundTrip(big)) === big);
  });

  test("a body of 1,000 levels comes back", async () => {
    assert.deepEqual(JSON.stringify(await roundTrip(nested(1000))), JSON.stringify(nested(1000)));
  });

  test("a line in one-byte chunks keeps its multi-byte characters", async () => {
    const { id, answer } = child.expect();
    const text = "\u00e9\u20ac\ud83d\ude80\u2028";
    const params = box.sibling({ handle: "bytes" }).params({ body: text });
    const line = Buffer.from(`${JSON.stringify({ jsonrpc: "2.0", id, method: "mailbox/append", params })}\n`);
    for (const byte of line) {
      child.process.stdin.write(Buffer.of(byte));
      await new Promise(setImmediate);
    }
    assert.ok((await answer).result);
    assert.deepEqual(bodies(await box.sibling({ handle: "bytes" }).claim("A")), [text]);
  });

  test("CRLF, blank lines and notifications are tolerated, and several lines may share a chunk", async () => {
    const first = child.expect();
    const second = child.expect();
    const line = (id) => JSON.stringify({ jsonrpc: "2.0", id, method: "mailbox/reap", params: { store: box.store, now: 1 } });
    child.process.stdin.write(
      `\r\n\n  \n{"jsonrpc":"2.0","method":"hello"}\n${line(first.id)}\r\n${line(second.id)}\n`,
    );
    assert.deepEqual((await first.answer).result, {});
    assert.deepEqual((await second.answer).result, {});
  });

  test("a line that is not JSON, or not UTF-8, gets -32700 with a null id, and the next call works", async () => {
    for (const junk of [Buffer.from("{half\n"), Buffer.from([0x22, 0xff, 0xfe, 0x22, 0x0a]), Buffer.from("\ufeff{}\n"), Buffer.from('"\\uD800"\n')]) {
      const { answer } = child.expect(null);
      child.process.stdin.write(junk);
      assert.equal((await answer).error.code, -32700);
    }
    assert.deepEqual(await box.reap(), {});
  });

  test("JSON that is no request gets -32600", async () => {
    for (const [line, id] of [["[]", null], ["null", null], ['"x"', null], ['{"id":900}', 900], ['{"id":901,"method":"shutdown"}', 901], ['{"id":"x","method":"m"}', null]]) {
      const { answer } = child.expect(id);
      child.process.stdin.write(`${line}\n`);
      assert.equal((await answer).error.code, -32600, line);
    }
  });

  test("malformed params get -32602 and say which one", async () => {
    const good = box.params({ owner: "A", ttlMs: 5 });
    for (const [name, value] of [["scope", 5], ["handle", null], ["owner", undefined], ["ttlMs", undefined], ["now", 1.5], ["store", 3]]) {
      const error = await child.error("mailbox/claim", { ...good, [name]: value });
      assert.equal(error.code, -32602, name);
      assert.match(error.message, new RegExp(name));
    }
    assert.equal((await child.error("mailbox/append", box.params())).code, -32602);
    assert.equal((await child.error("mailbox/reap", [])).code, -32602);
  });

  test("what the store does not have gets -32601", async () => {
    for (const method of ["store/attach", "store/destroy", "nope", "constructor", "__proto__", "memory/put"]) {
      const error = await child.error(method, { location: 1 });
      assert.equal(error.code, -32601, method);
      assert.match(error.message, /not served/);
    }
  });

  test("a closed store refuses, closing it again is fine, an unknown one refuses everything", async () => {
    const closing = await Box.open(child);
    await closing.append("kept");
    assert.deepEqual(await child.call("store/close", { store: closing.store }), {});
    assert.deepEqual(await child.call("store/close", { store: closing.store }), {});
    const holder = { owner: "A", lease: "lease-1", ttlMs: 5, upTo: 1, body: 1 };
    for (const op of ["append", "claim", "ack", "release", "renew", "peek", "reap", "drop"]) {
      const { message, data } = await child.error(`mailbox/${op}`, closing.params(holder));
      assert.deepEqual([message, data.reason], ["closed", "closed"], op); // by the store itself
    }
    assert.equal(await child.refusal("store/close", { store: "store-999" }), "closed");
    assert.equal(await child.refusal("mailbox/peek", { ...box.params(), store: "elsewhere" }), "closed");
  });
});

describe("an odd store", () => {
  let child;
  let box;
  before(async () => {
    child = new Child("odd-store.mjs", { base: FIXTURES });
    box = await Box.open(child);
  });
  after(() => child.shutdown());

  const append = (body) => child.error("mailbox/append", box.params({ body }));
  const claim = (handle) => child.error("mailbox/claim", box.sibling({ handle }).params({ owner: "A", ttlMs: 5 }));

  test("console.log and process.stdout.write end up on stderr", async () => {
    await box.append("log");
    await child.call("initialize", {});
    for (const text of ["console.log", "process.stdout.write", "a Buffer"]) {
      await child.logged(new RegExp(`^${text} from the store$`, "m"));
    }
  });

  test("an exception is a fault with its name and message; the stack goes to stderr", async () => {
    assert.deepEqual(await append("throw"), { code: -32603, message: "BodyError: no room: \ufffd" });
    await child.logged(/BodyError: no room[^]*odd-store\.mjs:\d+/);
    assert.match((await append("throw text")).message, /only text/);
  });

  test("a refusal carries its reason, message and data", async () => {
    assert.deepEqual(await append("refuse"), {
      code: -32001, message: "at most 3", data: { limit: 3, reason: "too_large" },
    });
    assert.equal((await append("refuse badly")).code, -32603);
  });

  test("answers of the wrong form are faults that say what was expected", async () => {
    for (const [body, words] of [
      ["nan", /NaN.*"seq"/],
      ["bigint", /BigInt.*Number\(seq\)/],
      ["nothing", /append must answer \{ seq \}; it answered undefined/],
    ]) {
      const error = await append(body);
      assert.equal(error.code, -32603);
      assert.match(error.message, words);
    }
    for (const [handle, words] of [
      ["undefined", /claim must answer null, or \{ lease, messages \}/],
      ["list", /it answered a list of 0/],
      ["noLease", /an object with messages/],
      ["noBody", /without a body/],
      ["infinite", /Infinity/],
      ["surrogate", /lone surrogate/],
      ["surrogateKey", /key with a lone surrogate/],
      ["hole", /undefined/],
      ["map", /Map or Set/],
    ]) {
      const error = await claim(handle);
      assert.equal(error.code, -32603, handle);
      assert.match(error.message, words);
    }
    assert.match((await child.error("mailbox/ack", box.params({ owner: "A", lease: "l", upTo: 1 }))).message, /acked/);
  });

  test("answers that break the contract go out as they are, for the bench to judge", async () => {
    assert.deepEqual(await child.call("mailbox/append", box.params({ body: "zero" })), { seq: 0 });
    const empty = await child.call("mailbox/claim", box.sibling({ handle: "empty" }).params({ owner: "A", ttlMs: 5 }));
    assert.deepEqual(empty, { lease: "l", messages: [] });
    await child.logged(/at least one message/);
    const numbers = await child.call("mailbox/claim", box.sibling({ handle: "numbers" }).params({ owner: "A", ttlMs: 5 }));
    assert.deepEqual(numbers, { lease: "", messages: [0, -7, 1.5].map((seq) => ({ seq, body: 1 })) });
  });

  test("a closed store answers for itself, null included; what it throws is the refusal closed", async () => {
    const closed = await Box.open(child, { handle: "null" });
    for (let n = 0; n < 2; n += 1) assert.deepEqual(await child.call("store/close", { store: closed.store }), {});
    assert.equal(await closed.claim("A"), null);
    assert.equal(await closed.append("x"), 1);
    assert.equal(await child.refusal("mailbox/append", closed.params({ body: "throw" })), "closed");
    assert.equal(await child.refusal("mailbox/append", closed.params({ body: "refuse" })), "too_large");
    assert.equal(await child.refusal("store/close", { store: closed.store }), "closed");
    const { entries } = await child.call("memory/list", { store: closed.store });
    assert.deepEqual(entries, ["x"]);
  });

  test("of many closed stores old ones are let go", async () => {
    const first = await Box.open(child, { handle: "null" });
    for (let store = first.store, n = 0; n < 70; n += 1) {
      await child.call("store/close", { store });
      ({ store } = await child.call("store/open", {}));
    }
    assert.deepEqual(await child.call("store/close", { store: first.store }), {});
    assert.equal(await child.refusal("mailbox/claim", first.params({ owner: "A", ttlMs: 5 })), "closed");
  });

  test("ttlMs and max reach the store as they were sent", async () => {
    const params = box.sibling({ handle: "null" }).params({ owner: "A" });
    for (const sent of [{ ttlMs: "soon" }, { ttlMs: null }, { ttlMs: true, max: null }, { ttlMs: 5, max: "1" }]) {
      assert.equal(await child.call("mailbox/claim", { ...params, ...sent }), null);
    }
  });

  test("false does not pass for a yes", async () => {
    const error = await child.error("mailbox/release", box.params({ owner: "A", lease: "l" }));
    assert.deepEqual([error.code, /Refused/.test(error.message)], [-32603, true]);
  });

  test("members beside the answer's own never reach the wire", async () => {
    assert.deepEqual(await child.call("mailbox/append", box.params({ body: "extra" })), { seq: 4 });
  });

  test("an undeclared operation is not served, even where the store has it; nor is a missing one", async () => {
    const { code, message } = await child.error("mailbox/peek", box.params());
    assert.deepEqual([code, message], [-32601, "mailbox/peek is not served: peek is not declared"]);
    assert.match((await child.error("mailbox/reap", box.params())).message, /the store has no method reap/);
  });

  test("tombstone reaches the subject with the open store", async () => {
    assert.deepEqual(await child.call("recipient/tombstone", box.params()), {});
    const { entries } = await child.call("memory/list", { store: box.store });
    assert.deepEqual(entries.at(-1), { scope: "default", handle: "a", now: box.now });
  });

  test("registered methods are served where their capability is declared", async () => {
    assert.deepEqual(await child.call("bundle/hash", { sectionHashes: { a: 1, b: 2 } }), { hash: "2" });
    assert.deepEqual(await child.call("memory/put", { store: box.store, entry: { id: 9 } }), {});
    assert.equal(await child.refusal("memory/list", { store: "store-77" }), "closed");
    assert.equal((await child.error("bundle/canonical", { value: 1 })).code, -32601);
    assert.equal((await child.error("rules/constants", {})).code, -32601);
    assert.deepEqual((await child.error("memory/import", { store: box.store, raw: "{" })).data, {
      code: "not-json", reason: "bad_package",
    });
  });

  test("in face/read an exception is an answer, undefined is null, an unwritable answer is a fault", async () => {
    const { subject } = await child.call("face/open", { face: "intact" });
    assert.deepEqual(await child.call("face/read", { subject }), { answer: { id: 1 } });
    assert.deepEqual(await child.call("face/read", { subject: "gone" }), { answer: null });
    assert.equal(await child.refusal("face/read", { subject: "broken" }), "threw");
    for (const broken of ["surrogate", "shapeless"]) {
      assert.equal((await child.error("face/read", { subject: broken })).code, -32700, broken);
    }
    assert.deepEqual(await child.call("face/close", { subject }), {});
  });

  test("calls are answered in order, one at a time", async () => {
    const from = child.answers.length;
    const slow = child.send("mailbox/append", box.params({ body: { waitMs: 40 } }));
    child.process.stdin.write("junk\n");
    await child.send("mailbox/append", box.params({ body: "quick" }));
    const order = child.answers.slice(from).map(({ id, error }) => id ?? error.code);
    assert.deepEqual(order, [(await slow).id, -32700, (await slow).id + 1]);
  });
});

test("with concurrent declared, a quick call overtakes a slow one, and shutdown waits for both", async () => {
  const child = new Child("odd-store.mjs", { base: FIXTURES, env: { ODD_CONCURRENT: "1" } });
  const box = await Box.open(child);
  const from = child.answers.length;
  const slow = child.send("mailbox/append", box.params({ body: { waitMs: 60 } }));
  const quick = child.send("mailbox/append", box.params({ body: "quick" }));
  await child.shutdown();
  const order = child.answers.slice(from).map(({ id }) => id);
  assert.deepEqual(order, [(await quick).id, (await slow).id, (await slow).id + 2]);
});

describe("the end of a conversation", () => {
  const odd = fileURLToPath(new URL("odd-store.mjs", FIXTURES));
  const open = '{"jsonrpc":"2.0","id":1,"method":"store/open","params":{}}\n';

  test("the end of stdin closes open stores, after what was asked is answered, and exits 0", (t) => {
    const folder = fs.mkdtempSync(path.join(os.tmpdir(), "storeproof-sdk-"));
    t.after(() => fs.rmSync(folder, { recursive: true }));
    const closed = path.join(folder, "closed");
    const wait = '{"jsonrpc":"2.0","id":2,"method":"mailbox/append","params":{"store":"store-1","scope":"s","handle":"h","body":{"waitMs":30},"now":1}}\n';
    const { status, stdout, stderr } = spawnSync(process.execPath, [odd], {
      input: `${open}${wait}{"jsonrpc":"2.0","id":3`,
      encoding: "utf8",
      env: { ...process.env, ODD_CLOSED: closed },
    });
    assert.equal(status, 0, stderr);
    assert.deepEqual(stdout.trim().split("\n").map((line) => JSON.parse(line).id), [1, 2]);
    assert.equal(fs.readFileSync(closed, "utf8"), "closed\n");
    assert.match(stderr, /ended inside a line/);
  });

  test("an empty stdin is a clean and silent end", () => {
    const { status, stdout, stderr } = spawnSync(process.execPath, [odd], { input: "", encoding: "utf8" });
    assert.deepEqual({ status, stdout, stderr }, { status: 0, stdout: "", stderr: "" });
  });

  test("a big last answer is whole before the child exits", () => {
    const size = 4 * MIB;
    const append = { store: "store-1", scope: "s", handle: "h", now: 1, body: "x".repeat(size) };
    const claim = { store: "store-1", scope: "s", handle: "h", now: 1, owner: "A", ttlMs: 5 };
    const input = [["store/open", {}], ["mailbox/append", append], ["mailbox/claim", claim], ["shutdown", {}], ["initialize", {}]]
      .map(([method, params], id) => `${JSON.stringify({ jsonrpc: "2.0", id, method, params })}\n`)
      .join("");
    const memory = fileURLToPath(new URL("memory-mailbox.mjs", EXAMPLES));
    const { status, stdout } = spawnSync(process.execPath, [memory], { input, maxBuffer: 64 * MIB });
    const lines = stdout.toString().trimEnd().split("\n").map((line) => JSON.parse(line));
    assert.equal(status, 0);
    assert.deepEqual(lines.map(({ id }) => id), [0, 1, 2, 3]); // nothing is served after shutdown
    assert.equal(lines[2].result.messages[0].body.length, size);
  });

  test("a reader that went away is a quiet end", async () => {
    const child = new Child("memory-mailbox.mjs");
    await child.call("initialize", {});
    child.process.stdout.destroy();
    for (let n = 0; n < 50; n += 1) {
      child.process.stdin.write('{"jsonrpc":"2.0","id":1,"method":"initialize"}\n');
    }
    assert.deepEqual(await child.exit, { code: 0, signal: null });
    assert.equal(child.stderr, "");
  });
});

test("a wrong declaration ends the program before the first call, and names the member", () => {
  const sdk = JSON.stringify(new URL("../index.mjs", import.meta.url).href);
  const program = `import { serve } from ${sdk}; serve({ name: "n", version: "1" });`;
  const child = spawnSync(process.execPath, ["--input-type=module", "-e", program], { input: "", encoding: "utf8" });
  assert.equal(child.status, 1);
  assert.equal(child.stdout, "");
  assert.match(child.stderr, /TypeError: subject\.capabilities must be an object/);
});
