// A bare client: starts a subject as a child process and talks to it line by line.

import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { fileURLToPath } from "node:url";
import { LineSplitter } from "../lib/lines.mjs";

export const EXAMPLES = new URL("../examples/", import.meta.url);
export const FIXTURES = new URL("./", import.meta.url);

export class Child {
  stderr = "";
  answers = []; // every message seen on stdout, in order
  #waiting = new Map();
  #lastId = 0;
  #lines = new LineSplitter();

  /** Starts `name`, a file under `base`; `env` adds to this process's environment. */
  constructor(name, { base = EXAMPLES, env = {} } = {}) {
    this.process = spawn(process.execPath, [fileURLToPath(new URL(name, base))], {
      env: { ...process.env, ...env },
      cwd: "/",
    });
    this.process.stderr.setEncoding("utf8").on("data", (text) => (this.stderr += text));
    this.process.stdout.on("data", (chunk) => this.#read(chunk));
    this.process.stdin.on("error", () => {});
    this.exit = new Promise((resolve) => {
      this.process.on("close", (code, signal) => {
        for (const { reject } of this.#waiting.values()) {
          reject(new Error(`the child ended (${signal ?? code}): ${this.stderr}`));
        }
        resolve({ code, signal });
      });
    });
  }

  /** Sends a call; resolves to the whole answer, error or not. */
  send(method, params) {
    const { id, answer } = this.expect();
    this.process.stdin.write(`${JSON.stringify({ jsonrpc: "2.0", id, method, params })}\n`);
    return answer;
  }

  /** Reserves an id, for a test that writes the line itself. */
  expect(id = ++this.#lastId) {
    const answer = new Promise((resolve, reject) => this.#waiting.set(id, { resolve, reject }));
    return { id, answer };
  }

  /** Sends a call that must have a result. */
  async call(method, params) {
    const answer = await this.send(method, params);
    assert.ok("result" in answer, `${method}: ${JSON.stringify(answer.error)}`);
    return answer.result;
  }

  /** Sends a call that must be refused; resolves to the reason. */
  async refusal(method, params) {
    const { error } = await this.send(method, params);
    assert.equal(error?.code, -32001, `${method}: ${JSON.stringify(error)}`);
    return error.data.reason;
  }

  /** Sends a call that must fail; resolves to the error. */
  async error(method, params) {
    const { error, result } = await this.send(method, params);
    assert.ok(error, `${method} answered ${JSON.stringify(result)}`);
    return error;
  }

  /** Waits until stderr matches: it is a second pipe, so an answer may overtake a log line. */
  async logged(pattern, waitMsMax = 5000) {
    const deadline = performance.now() + waitMsMax;
    while (!pattern.test(this.stderr) && performance.now() < deadline) {
      await new Promise((resolve) => setTimeout(resolve, 2));
    }
    assert.match(this.stderr, pattern);
  }

  async shutdown() {
    assert.deepEqual(await this.call("shutdown", {}), {});
    assert.deepEqual(await this.exit, { code: 0, signal: null });
  }

  kill() {
    this.process.kill("SIGKILL");
    return this.exit;
  }

  #read(chunk) {
    for (const line of this.#lines.push(chunk)) {
      const message = JSON.parse(line.toString("utf8"));
      this.answers.push(message);
      this.#waiting.get(message.id)?.resolve(message);
      this.#waiting.delete(message.id);
    }
  }
}

/** A mailbox over the wire, with short calls: `box.append("m1")`, `box.claim("A", { max: 1 })`. */
export class Box {
  now = 1_000_000;

  constructor(child, store, { scope = "default", handle = "a" } = {}) {
    Object.assign(this, { child, store, scope, handle });
  }

  static async open(child, names) {
    const { store, location } = await child.call("store/open", {});
    return Object.assign(new Box(child, store, names), { location });
  }

  sibling(names) {
    return Object.assign(new Box(this.child, this.store, { scope: this.scope, handle: this.handle, ...names }), {
      now: this.now,
    });
  }

  params(more) {
    const { store, scope, handle, now } = this;
    return { store, scope, handle, now, ...more };
  }

  append(body) {
    return this.child.call("mailbox/append", this.params({ body })).then(({ seq }) => seq);
  }

  claim(owner, more = {}) {
    return this.child.call("mailbox/claim", this.params({ owner, ttlMs: 1000, ...more }));
  }

  ack(owner, lease, upTo) {
    return this.child.call("mailbox/ack", this.params({ owner, lease, upTo })).then(({ acked }) => acked);
  }

  refusedAck(owner, lease, upTo) {
    return this.child.refusal("mailbox/ack", this.params({ owner, lease, upTo }));
  }

  drop() {
    return this.child.call("mailbox/drop", this.params()).then(({ dropped }) => dropped);
  }

  reap() {
    return this.child.call("mailbox/reap", { store: this.store, now: this.now });
  }
}

export const bodies = (delivery) => delivery.messages.map(({ body }) => body);
export const seqs = (delivery) => delivery.messages.map(({ seq }) => seq);

/** `[[[...leaf...]]]`, `levels` lists deep. */
export function nested(levels, leaf = "leaf") {
  let value = leaf;
  for (let level = 0; level < levels; level += 1) value = [value];
  return value;
}
