// A complete mailbox store in memory. Copy this file, then replace the Map by your own storage.
//
//   storeproof certify -- node adapters/node/examples/memory-mailbox.mjs

import { Refused, serve } from "../index.mjs";

class MemoryMailbox {
  #boxes = new Map(); // key of (scope, handle) -> { messages: [{ seq, body }], lease? }
  #lastSeq = 0; // one counter for the whole store, so that dropping a box forgets no seq
  #leaseCount = 0;

  append({ scope, handle, body }) {
    const key = keyOf(scope, handle);
    if (!this.#open.has(key)) this.#open.set(key, { messages: [] });
    this.#lastSeq += 1;
    this.#open.get(key).messages.push({ seq: this.#lastSeq, body });
    return { seq: this.#lastSeq };
  }

  claim({ scope, handle, owner, ttlMs, max, now }) {
    const box = this.#open.get(keyOf(scope, handle));
    checkAboveZero(ttlMs, "invalid_ttl");
    if (max !== undefined) checkAboveZero(max, "invalid_max");
    if (!box || box.messages.length === 0) return null; // and no lease on nothing
    if (isLive(box.lease, now)) return box.lease.owner === owner ? delivery(box) : null;

    this.#leaseCount += 1;
    const lastDelivered = box.messages.slice(0, max).at(-1).seq;
    box.lease = { id: `lease-${this.#leaseCount}`, owner, expiry: now + ttlMs, lastDelivered };
    return delivery(box);
  }

  ack({ upTo, ...holder }) {
    const box = this.#held(holder);
    const upToDelivered = Math.min(upTo, box.lease.lastDelivered);
    const rest = box.messages.filter(({ seq }) => seq > upToDelivered);
    const acked = box.messages.length - rest.length;
    box.messages = rest;
    box.lease = undefined; // an ack settles the lease: what is left is claimable at once
    return { acked };
  }

  release(holder) {
    this.#held(holder).lease = undefined;
  }

  renew({ ttlMs, ...holder }) {
    checkAboveZero(ttlMs, "invalid_ttl");
    this.#held(holder).lease.expiry = holder.now + ttlMs;
  }

  peek({ scope, handle }) {
    return { messages: this.#open.get(keyOf(scope, handle))?.messages ?? [] };
  }

  reap({ now }) {
    for (const [key, box] of this.#open) {
      if (!isLive(box.lease, now)) box.lease = undefined;
      if (box.messages.length === 0) this.#open.delete(key);
    }
  }

  drop({ scope, handle }) {
    const key = keyOf(scope, handle);
    const dropped = this.#open.get(key)?.messages.length ?? 0;
    this.#open.delete(key);
    return { dropped };
  }

  close() {
    this.#boxes = undefined; // and a second call does the same again
  }

  /** The boxes; after `close` every call comes by here and is refused, never answered as empty. */
  get #open() {
    if (this.#boxes === undefined) throw new Refused("closed");
    return this.#boxes;
  }

  /** The box whose live lease this caller holds. */
  #held({ scope, handle, owner, lease, now }) {
    const box = this.#open.get(keyOf(scope, handle));
    const isHolder = isLive(box?.lease, now) && box.lease.id === lease && box.lease.owner === owner;
    if (!isHolder) throw new Refused("lease_not_held", `${owner} holds no live lease ${lease} here`);
    return box;
  }
}

/** Distinct pairs give distinct keys: ("a:b", "c") is not ("a", "b:c"). */
function keyOf(scope, handle) {
  if (scope === "" || handle === "") throw new Refused("invalid_name", "scope and handle must not be empty");
  return JSON.stringify([scope, handle]);
}

/** `ttlMs` and `max` arrive as they were sent: "5", true and null are no numbers. */
function checkAboveZero(value, reason) {
  if (!(Number.isSafeInteger(value) && value > 0)) throw new Refused(reason);
}

function isLive(lease, now) {
  return lease !== undefined && now < lease.expiry;
}

function delivery({ messages, lease }) {
  return { lease: lease.id, messages: messages.filter(({ seq }) => seq <= lease.lastDelivered) };
}

serve({
  name: "memory-mailbox",
  version: "1.0.0",
  capabilities: { mailbox: true, tenancy: true, peek: true, release: true, renew: true, clock: "caller" },
  open: () => ({ store: new MemoryMailbox() }),
});
