// The example stores keep the mailbox contract: its rules, asked over the wire.

import assert from "node:assert/strict";
import fs from "node:fs";
import os from "node:os";
import path from "node:path";
import { after, before, describe, test } from "node:test";
import { bodies, Box, Child, seqs } from "../test-support/wire.mjs";

const SAFE_MAX = Number.MAX_SAFE_INTEGER;

/** A TMPDIR of its own, so that a durable store leaves nothing behind. */
const scratch = fs.mkdtempSync(path.join(os.tmpdir(), "storeproof-sdk-"));
after(() => fs.rmSync(scratch, { recursive: true }));
const start = (name) => new Child(name, { env: { TMPDIR: scratch } });

for (const name of ["memory-mailbox.mjs", "file-mailbox.mjs"]) {
  describe(name, () => {
    let child;
    let box;
    let handles = 0;
    before(async () => {
      child = start(name);
      box = await Box.open(child);
    });
    after(() => child.shutdown());

    /** A box nobody used yet, holding these bodies. */
    async function filled(...contents) {
      handles += 1;
      const fresh = box.sibling({ handle: `box${handles}` });
      fresh.receipts = [];
      for (const body of contents) fresh.receipts.push(await fresh.append(body));
      return fresh;
    }

    test("a claim on an empty box answers null and leaves no lease", async () => {
      const b = await filled();
      assert.equal(await b.claim("A"), null);
      await b.append("m1");
      const delivery = await b.claim("B");
      assert.deepEqual(bodies(delivery), ["m1"]);
      assert.equal(await b.ack("B", delivery.lease, delivery.messages[0].seq), 1);
      assert.equal(await b.claim("A"), null);
      await b.append("m2");
      assert.deepEqual(bodies(await b.claim("C")), ["m2"]);
    });

    test("messages come in order, with the seqs of their receipts", async () => {
      const b = await filled(1, 2, 3, 4, 5);
      const delivery = await b.claim("A");
      assert.deepEqual(bodies(delivery), [1, 2, 3, 4, 5]);
      assert.deepEqual(seqs(delivery), b.receipts);
      assert.deepEqual([...b.receipts].sort((x, y) => x - y), b.receipts);
    });

    test("a live lease fences the box to its last millisecond, then its messages are claimable", async () => {
      const b = await filled("m");
      const delivery = await b.claim("A", { ttlMs: 100 });
      b.now += 99;
      assert.equal(await b.claim("B"), null);
      assert.deepEqual(await b.claim("A"), delivery);
      b.now += 1;
      const again = await b.claim("B");
      assert.deepEqual(again.messages, delivery.messages);
      assert.notEqual(again.lease, delivery.lease);
    });

    test("an append under a lease is not delivered by it and survives its ack", async () => {
      const b = await filled("old");
      const { lease } = await b.claim("A");
      const late = await b.append("late");
      assert.deepEqual(bodies(await b.claim("A")), ["old"]);
      assert.equal(await b.ack("A", lease, late), 1);
      assert.deepEqual(seqs(await b.claim("B")), [late]);
    });

    test("ack: a part, beyond what was delivered, and below it", async () => {
      const b = await filled(1, 2, 3, 4);
      const first = await b.claim("A", { max: 3 });
      assert.deepEqual(bodies(first), [1, 2, 3]);
      assert.equal(await b.ack("A", first.lease, b.receipts[0]), 1);
      const second = await b.claim("B", { max: 2 });
      assert.deepEqual(bodies(second), [2, 3]);
      assert.equal(await b.ack("B", second.lease, SAFE_MAX), 2);
      const third = await b.claim("A");
      assert.equal(await b.ack("A", third.lease, b.receipts[0]), 0);
      assert.deepEqual(bodies(await b.claim("B")), [4]);
    });

    test("only the holder of the live lease on that box may ack", async () => {
      const b = await filled("m");
      const other = await filled("other");
      const [seq] = b.receipts;
      assert.equal(await b.refusedAck("A", "lease-1", seq), "lease_not_held");
      const { lease } = await b.claim("A", { ttlMs: 100 });
      const { lease: otherLease } = await other.claim("A", { ttlMs: 100 });
      assert.equal(await b.refusedAck("B", lease, seq), "lease_not_held");
      assert.equal(await b.refusedAck("A", "invented", seq), "lease_not_held");
      assert.equal(await b.refusedAck("A", otherLease, seq), "lease_not_held");
      assert.equal(await other.ack("A", otherLease, SAFE_MAX), 1);
      b.now += 100;
      assert.equal(await b.refusedAck("A", lease, seq), "lease_not_held");
      const { lease: next } = await b.claim("B");
      assert.equal(await b.refusedAck("A", lease, seq), "lease_not_held");
      assert.equal(await b.ack("B", next, seq), 1);
      assert.equal(await b.refusedAck("B", next, seq), "lease_not_held");
    });

    test("drop empties the box and kills its lease; the seqs go on", async () => {
      const b = await filled("a", "b");
      const { lease } = await b.claim("A");
      assert.equal(await b.drop(), 2);
      assert.equal(await b.drop(), 0);
      assert.equal(await b.claim("A"), null);
      const seq = await b.append("c");
      assert.ok(seq > b.receipts[1]);
      assert.equal(await b.refusedAck("A", lease, SAFE_MAX), "lease_not_held");
      const next = await b.claim("B");
      assert.notEqual(next.lease, lease);
      assert.equal(await b.ack("B", next.lease, SAFE_MAX), 1);
      await b.reap();
      assert.ok((await b.append("d")) > seq);
    });

    test("reap frees no live lease and loses no message", async () => {
      const b = await filled("m");
      const { lease } = await b.claim("A", { ttlMs: 100 });
      await b.reap();
      assert.equal(await b.claim("B"), null);
      b.now += 100;
      await b.reap();
      assert.equal(await b.refusedAck("A", lease, SAFE_MAX), "lease_not_held");
      assert.deepEqual(bodies(await b.claim("B")), ["m"]);
    });

    test("release, renew and peek", async () => {
      const b = await filled("m");
      const { lease } = await b.claim("A", { ttlMs: 100 });
      assert.deepEqual(bodies(await child.call("mailbox/peek", b.params())), ["m"]);
      for (const op of ["release", "renew"]) {
        assert.equal(await child.refusal(`mailbox/${op}`, b.params({ owner: "B", lease, ttlMs: 9 })), "lease_not_held");
      }
      assert.equal(await child.refusal("mailbox/renew", b.params({ owner: "A", lease, ttlMs: 0 })), "invalid_ttl");
      b.now += 50;
      assert.deepEqual(await child.call("mailbox/renew", b.params({ owner: "A", lease, ttlMs: 100 })), {});
      b.now += 99;
      assert.equal(await b.claim("B"), null);
      assert.deepEqual(await child.call("mailbox/release", b.params({ owner: "A", lease })), {});
      assert.equal(await b.refusedAck("A", lease, SAFE_MAX), "lease_not_held");
      assert.deepEqual(bodies(await b.claim("B")), ["m"]);
      assert.deepEqual((await child.call("mailbox/peek", (await filled()).params())).messages, []);
    });

    test("bad arguments are refused and change nothing", async () => {
      const b = await filled("m");
      for (const names of [{ scope: "" }, { handle: "" }]) {
        const wrong = b.sibling(names).params({ owner: "A", ttlMs: 10, body: 1 });
        for (const op of ["append", "claim", "peek", "drop"]) {
          assert.equal(await child.refusal(`mailbox/${op}`, wrong), "invalid_name", op);
        }
      }
      for (const wrong of [0, -1, 1.5, "5", true, null, [1]]) {
        assert.equal(await child.refusal("mailbox/claim", b.params({ owner: "A", ttlMs: wrong })), "invalid_ttl");
        assert.equal(await child.refusal("mailbox/claim", b.params({ owner: "A", ttlMs: 10, max: wrong })), "invalid_max");
      }
      assert.deepEqual(bodies(await b.claim("B")), ["m"]);
    });

    test("distinct pairs of names are distinct boxes", async () => {
      const pairs = [
        ["a:b", "c"], ["a", "b:c"], ["a/b", "c"], ["a", "b/c"], ['a","b', "c"], ["a", 'b","c'], ["a\\", "b"], ["a", "\\b"],
        ["a\u0000b", "c"], ["a", "b\u0000c"], ["__proto__", "x"], ["constructor", "x"], ["A", "x"], ["a", "x"], ["a ", "x"],
        ["\u00e9", "x"], ["e\u0301", "x"], ["%41", "x"], ["..", "../../x"], ["CON", "-x"], ["n".repeat(299) + "1", "x"], ["n".repeat(299) + "2", "x"],
      ];
      const boxes = pairs.map(([scope, handle]) => box.sibling({ scope, handle }));
      for (const [index, b] of boxes.entries()) await b.append(index);
      for (const [index, b] of boxes.entries()) assert.deepEqual(bodies(await b.claim("A")), [index], pairs[index].join());
      assert.equal(await boxes[0].drop(), 1);
      assert.deepEqual((await child.call("mailbox/peek", boxes[1].params())).messages.length, 1);
    });

    test("two open stores share nothing", async () => {
      const other = await Box.open(child, { handle: "shared" });
      await box.sibling({ handle: "shared" }).append("here");
      assert.equal(await other.claim("A"), null);
    });
  });
}

describe("file-mailbox.mjs, durable", () => {
  test("messages, seqs and live leases survive close, attach, and kill -9", async () => {
    const first = start("file-mailbox.mjs");
    const b = await Box.open(first);
    assert.ok(path.isAbsolute(b.location) && b.location.startsWith(fs.realpathSync(scratch)));
    const body = JSON.parse('{"__proto__":[1],"\u2028":null}');
    const last = [await b.append(body), await b.append("two")].at(-1);
    const { lease } = await b.claim("A", { ttlMs: 100 });

    await first.call("store/close", { store: b.store });
    assert.equal((await first.error("mailbox/peek", b.params())).message, "closed");
    ({ store: b.store } = await first.call("store/attach", { location: b.location }));
    assert.equal(await b.claim("B"), null);
    await first.kill();

    const second = start("file-mailbox.mjs");
    const { store } = await second.call("store/attach", { location: b.location });
    const again = Object.assign(new Box(second, store), { now: b.now + 99 });
    assert.equal(await again.claim("B"), null);
    const delivery = await again.claim("A");
    assert.equal(delivery.lease, lease);
    assert.equal(JSON.stringify(bodies(delivery)), JSON.stringify([body, "two"]));
    assert.equal(await again.ack("A", lease, SAFE_MAX), 2);
    await again.append("three");
    await again.drop();
    await again.reap();

    await second.call("store/close", { store });
    ({ store: again.store } = await second.call("store/attach", { location: b.location }));
    assert.equal(await again.append("four"), last + 2);
    assert.notEqual((await again.claim("A")).lease, lease);
    await second.call("store/close", { store: again.store });
    await second.call("store/destroy", { location: b.location });
    assert.equal(fs.existsSync(b.location), false);
    await second.shutdown();
  });

  test("a missing or broken state is a fault, never an empty mailbox; destroy takes only its own", async () => {
    const child = start("file-mailbox.mjs");
    const b = await Box.open(child);
    await b.append("m");
    const file = path.join(b.location, "mailbox.json");
    const whole = fs.readFileSync(file);
    for (const broken of [whole.subarray(0, 20), "", "null", "{}", "[]"]) {
      fs.writeFileSync(file, broken);
      assert.equal((await child.error("mailbox/claim", b.params({ owner: "A", ttlMs: 5 }))).code, -32603);
      assert.equal((await child.error("store/attach", { location: b.location })).code, -32603);
      assert.equal((await child.error("store/destroy", { location: b.location })).code, -32603);
    }
    assert.equal((await child.error("store/attach", { location: path.join(scratch, "nowhere") })).code, -32603);
    assert.equal((await child.error("store/destroy", { location: scratch })).code, -32603);

    fs.writeFileSync(file, whole);
    const foreign = path.join(b.location, "foreign");
    fs.writeFileSync(foreign, "");
    assert.equal((await child.error("store/destroy", { location: b.location })).code, -32603);
    assert.ok(fs.existsSync(foreign));
    await child.shutdown();
  });
});

describe("wall-mailbox.mjs", () => {
  let child;
  let box;
  before(async () => {
    child = start("wall-mailbox.mjs");
    box = await Box.open(child);
  });
  after(() => child.shutdown());

  test("claims are capped, seqs have gaps, and claiming and acking drains in order", async () => {
    const b = box.sibling({ handle: "drain" });
    const receipts = [];
    for (const body of [1, 2, 3, 4, 5]) receipts.push(await b.append(body));
    assert.ok(receipts[1] > receipts[0] + 1);
    const drained = [];
    for (let d = await b.claim("A", { ttlMs: 60_000, max: 5 }); d; d = await b.claim("A", { ttlMs: 60_000, max: 5 })) {
      assert.ok(d.messages.length <= 2);
      drained.push(...d.messages);
      assert.equal(await b.ack("A", d.lease, SAFE_MAX), d.messages.length);
      assert.equal(await b.ack("A", d.lease, SAFE_MAX), 0);
      assert.equal(await b.refusedAck("B", d.lease, SAFE_MAX), "lease_not_held");
    }
    assert.deepEqual(drained, receipts.map((seq, index) => ({ seq, body: index + 1 })));
  });

  test("leases go by the store's own clock, not by the caller's now", async () => {
    const b = box.sibling({ handle: "clock" });
    await b.append("m");
    const { lease } = await b.claim("A", { ttlMs: 60_000 });
    b.now += 120_000;
    assert.equal(await b.claim("B"), null);
    assert.equal(await b.ack("A", lease, 0), 0);
    const short = await b.claim("A", { ttlMs: 30 });
    await new Promise((resolve) => setTimeout(resolve, 45));
    assert.equal(await b.refusedAck("A", short.lease, SAFE_MAX), "lease_not_held");
    assert.deepEqual(bodies(await b.claim("B")), ["m"]);
  });

  test("odd names and big bodies are refused, plain ones are not", async () => {
    for (const handle of ["", "A", "1a", "a-b", "a".repeat(17), "a\n", "\u00e9"]) {
      assert.equal(await child.refusal("mailbox/append", box.sibling({ handle }).params({ body: 1 })), "invalid_name", handle);
    }
    const b = box.sibling({ handle: "a".repeat(16) });
    assert.equal(await child.refusal("mailbox/append", b.params({ body: "x".repeat(5000) })), "too_large");
    await b.append("x".repeat(1024));
    assert.equal(await b.drop(), 1);
    for (const [wrong, reason] of [[{ ttlMs: 0 }, "invalid_ttl"], [{ ttlMs: "5" }, "invalid_ttl"], [{ max: 0 }, "invalid_max"]]) {
      assert.equal(await child.refusal("mailbox/claim", b.params({ owner: "A", ttlMs: 10, ...wrong })), reason);
    }
  });

  test("a closed store refuses by itself", async () => {
    const b = await Box.open(child);
    for (let n = 0; n < 2; n += 1) assert.deepEqual(await child.call("store/close", { store: b.store }), {});
    for (const op of ["append", "claim", "ack", "reap", "drop"]) {
      const params = b.params({ owner: "A", ttlMs: 5, lease: "l", upTo: 1, body: 1 });
      const { code, message, data } = await child.error(`mailbox/${op}`, params);
      // The SDK would turn a TypeError into the same reason: its message then says more than "closed".
      assert.deepEqual([code, message, data.reason], [-32001, "closed", "closed"], op);
    }
  });

  test("what was not declared is not served", async () => {
    for (const op of ["peek", "release", "renew"]) {
      const params = box.params({ owner: "A", lease: "l", ttlMs: 5 });
      assert.equal((await child.error(`mailbox/${op}`, params)).code, -32601);
    }
  });
});
