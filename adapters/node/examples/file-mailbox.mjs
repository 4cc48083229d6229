// A durable mailbox store: one folder a storage, its whole state in one JSON file.
//
// Every change reads the state, changes it, and puts a new file in place of the old one before it
// answers, so a receipt survives a kill and a half-written state is never seen. Two processes that
// change one storage at the same time would lose each other's changes: there is no lock, and
// crossProcessSafe is not declared.
//
//   storeproof certify -- node adapters/node/examples/file-mailbox.mjs

import fs from "node:fs";
import os from "node:os";
import path from "node:path";
import { Refused, serve } from "../index.mjs";

const FORMAT = "file-mailbox/1";
const STATE_FILE = "mailbox.json";
const NEXT_FILE = "mailbox.json.next";

class FileMailbox {
  #folder;
  #isClosed = false;

  constructor(folder) {
    this.#folder = folder;
    load(folder); // a missing or broken storage fails here, not at the first call
  }

  append({ scope, handle, body }) {
    const key = keyOf(scope, handle);
    return this.#change((state) => {
      const seq = state.lastSeq + 1;
      const box = state.boxes.get(key) ?? { messages: [], lease: null };
      box.messages.push({ seq, body });
      state.boxes.set(key, box);
      state.lastSeq = seq;
      return { seq };
    });
  }

  claim({ scope, handle, owner, ttlMs, max, now }) {
    const key = keyOf(scope, handle);
    checkAboveZero(ttlMs, "invalid_ttl");
    if (max !== undefined) checkAboveZero(max, "invalid_max");
    const box = this.#load().boxes.get(key);
    if (!box || box.messages.length === 0) return null;
    if (isLive(box.lease, now)) return box.lease.owner === owner ? delivery(box) : null;

    return this.#change((state) => {
      const leased = state.boxes.get(key);
      state.leaseCount += 1;
      const lastDelivered = leased.messages.slice(0, max).at(-1).seq;
      leased.lease = { id: `lease-${state.leaseCount}`, owner, expiry: now + ttlMs, lastDelivered };
      return delivery(leased);
    });
  }

  ack({ upTo, ...holder }) {
    return this.#change((state) => {
      const box = heldBox(state, holder);
      const upToDelivered = Math.min(upTo, box.lease.lastDelivered);
      const rest = box.messages.filter(({ seq }) => seq > upToDelivered);
      const acked = box.messages.length - rest.length;
      box.messages = rest;
      box.lease = null;
      return { acked };
    });
  }

  release(holder) {
    this.#change((state) => {
      heldBox(state, holder).lease = null;
    });
  }

  renew({ ttlMs, ...holder }) {
    checkAboveZero(ttlMs, "invalid_ttl");
    this.#change((state) => {
      heldBox(state, holder).lease.expiry = holder.now + ttlMs;
    });
  }

  peek({ scope, handle }) {
    const key = keyOf(scope, handle);
    return { messages: this.#load().boxes.get(key)?.messages ?? [] };
  }

  reap({ now }) {
    this.#change((state) => {
      for (const [key, box] of state.boxes) {
        if (!isLive(box.lease, now)) box.lease = null;
        if (box.messages.length === 0) state.boxes.delete(key);
      }
    });
  }

  drop({ scope, handle }) {
    const key = keyOf(scope, handle);
    return this.#change((state) => {
      const dropped = state.boxes.get(key)?.messages.length ?? 0;
      state.boxes.delete(key);
      return { dropped };
    });
  }

  close() {
    this.#isClosed = true; // no file stays open between calls, and leases live on in the state
  }

  #load() {
    if (this.#isClosed) throw new Refused("closed");
    return load(this.#folder);
  }

  /** Applies a change to a fresh copy of the state and keeps it, or throws and keeps nothing. */
  #change(apply) {
    const state = this.#load();
    const answer = apply(state);
    save(this.#folder, state);
    return answer;
  }
}

function heldBox(state, { scope, handle, owner, lease, now }) {
  const box = state.boxes.get(keyOf(scope, handle));
  const isHolder = isLive(box?.lease, now) && box.lease.id === lease && box.lease.owner === owner;
  if (!isHolder) throw new Refused("lease_not_held", `${owner} holds no live lease ${lease} here`);
  return box;
}

/** Names are only ever text inside the file: none of them becomes a path. */
function keyOf(scope, handle) {
  if (scope === "" || handle === "") throw new Refused("invalid_name", "scope and handle must not be empty");
  return JSON.stringify([scope, handle]);
}

/** `ttlMs` and `max` arrive as they were sent: "5", true and null are no numbers. */
function checkAboveZero(value, reason) {
  if (!(Number.isSafeInteger(value) && value > 0)) throw new Refused(reason);
}

function isLive(lease, now) {
  return lease != null && now < lease.expiry;
}

function delivery({ messages, lease }) {
  return { lease: lease.id, messages: messages.filter(({ seq }) => seq <= lease.lastDelivered) };
}

/** Reads the state; anything that is not a whole state is an error, never an empty mailbox. */
function load(folder) {
  const { format, lastSeq, leaseCount, boxes } = JSON.parse(fs.readFileSync(path.join(folder, STATE_FILE), "utf8"));
  if (format !== FORMAT) throw new Error(`${folder} is no ${FORMAT} storage`);
  return { lastSeq, leaseCount, boxes: new Map(boxes) };
}

/** Writes the state beside the old one, makes it durable, then puts it in place in one step. */
function save(folder, { lastSeq, leaseCount, boxes }) {
  const next = path.join(folder, NEXT_FILE);
  const text = JSON.stringify({ format: FORMAT, lastSeq, leaseCount, boxes: [...boxes] });
  withFile(next, "w", (fd) => {
    fs.writeFileSync(fd, text);
    fs.fsyncSync(fd);
  });
  fs.renameSync(next, path.join(folder, STATE_FILE));
  // The rename itself is durable once its folder is; Windows has no such call.
  if (process.platform !== "win32") withFile(folder, "r", fs.fsyncSync);
}

function withFile(file, flags, use) {
  const fd = fs.openSync(file, flags);
  try {
    use(fd);
  } finally {
    fs.closeSync(fd);
  }
}

serve({
  name: "file-mailbox",
  version: "1.0.0",
  capabilities: {
    mailbox: true, durable: true, tenancy: true, peek: true, release: true, renew: true, clock: "caller",
  },

  open() {
    const folder = fs.mkdtempSync(path.join(fs.realpathSync(os.tmpdir()), "file-mailbox-"));
    save(folder, { lastSeq: 0, leaseCount: 0, boxes: new Map() });
    return { store: new FileMailbox(folder), location: folder, root: folder };
  },

  attach: (location) => ({ store: new FileMailbox(location) }),

  /** Removes the files this store writes and their folder, and nothing else. */
  destroy(location) {
    load(location);
    fs.rmSync(path.join(location, NEXT_FILE), { force: true });
    fs.rmSync(path.join(location, STATE_FILE));
    fs.rmdirSync(location);
  },
});
