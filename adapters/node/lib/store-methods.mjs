// The store's methods on the wire: what each takes, what it hangs on, what form its answer has.
//
// Only forms are checked here. Whether a seq is in range or a claim may be empty is the bench's to
// judge: a check that turned such an answer into a fault would hide the very bug it found.

import { AnswerFault } from "./errors.mjs";
import { isObject } from "./subject.mjs";

const RECIPIENT = { scope: "string", handle: "string" };
const HOLDER = { ...RECIPIENT, owner: "string", lease: "string" };

/** Wire name -> { op, needs, takes, answer }. A `takes` name that ends in `?` may be absent. */
export const STORE_METHODS = new Map([
  ["mailbox/append", { op: "append", takes: { ...RECIPIENT, body: "json", now: "integer" }, answer: receipt }],
  ["mailbox/claim", {
    op: "claim",
    takes: { ...RECIPIENT, owner: "string", ttlMs: "number", "max?": "number", now: "integer" },
    answer: delivery,
  }],
  ["mailbox/ack", { op: "ack", takes: { ...HOLDER, upTo: "seq", now: "integer" }, answer: count("acked") }],
  ["mailbox/release", { op: "release", needs: "release", takes: { ...HOLDER, now: "integer" }, answer: nothing }],
  ["mailbox/renew", {
    op: "renew",
    needs: "renew",
    takes: { ...HOLDER, ttlMs: "number", now: "integer" },
    answer: nothing,
  }],
  ["mailbox/peek", { op: "peek", needs: "peek", takes: { ...RECIPIENT, now: "integer" }, answer: contents }],
  ["mailbox/reap", { op: "reap", takes: { now: "integer" }, answer: nothing }],
  ["mailbox/drop", { op: "drop", takes: { ...RECIPIENT, now: "integer" }, answer: count("dropped") }],
]);

/** What `recipient/tombstone` takes, beside the store. */
export const TOMBSTONE_TAKES = { ...RECIPIENT, now: "integer" };

const FORMS = {
  string: (value) => typeof value === "string",
  number: (value) => typeof value === "number",
  integer: Number.isSafeInteger,
  seq: (value) => typeof value === "number" || typeof value === "string",
  json: (value) => value !== undefined,
};

/** Picks the named parameters, or answers which one is missing or of the wrong form. */
export function pick(params, takes) {
  const picked = {};
  for (const [entry, form] of Object.entries(takes)) {
    const name = entry.replace("?", "");
    const value = Object.hasOwn(params, name) ? params[name] : undefined;
    const isAbsent = value === undefined && name !== entry;
    if (!isAbsent && !FORMS[form](value)) return { wrong: `${name} must be a ${form} value` };
    picked[name] = value;
  }
  return { picked };
}

function receipt(answer) {
  demand(isObject(answer), "append must answer { seq }", answer);
  return { seq: seqOf(answer, "append") };
}

function delivery(answer) {
  if (answer === null) return null;
  const form = "claim must answer null, or { lease, messages } with at least one message";
  demand(isObject(answer) && typeof answer.lease === "string", form, answer);
  const { messages } = contents(answer, "claim");
  // Sent on as it is: a lease on nothing breaks the contract, and the bench says so by name.
  if (messages.length === 0) console.error(`storeproof: ${form}; this one answered no message`);
  return { lease: answer.lease, messages };
}

function contents(answer, op = "peek") {
  const form = `${op} must answer { messages: [{ seq, body }, ...] }`;
  demand(isObject(answer) && Array.isArray(answer.messages), form, answer);
  return {
    messages: answer.messages.map((message) => {
      demand(isObject(message), form, message);
      demand(
        message.body !== undefined,
        `${op} answered a message without a body (undefined); an empty body is null`,
        message,
      );
      return { seq: seqOf(message, op), body: message.body };
    }),
  };
}

function count(member) {
  return (answer) => {
    const op = member === "acked" ? "ack" : "drop";
    const form = `${op} must answer { ${member}: how many messages this call removed }`;
    demand(isObject(answer) && typeof answer[member] === "number", form, answer);
    return { [member]: answer[member] };
  };
}

function nothing() {
  return {};
}

function seqOf(answer, op) {
  const { seq } = answer;
  const hint = typeof seq === "bigint" ? "; this one is a BigInt, so answer Number(seq)" : "";
  demand(FORMS.seq(seq), `${op}: seq must be a number${hint}`, answer);
  return seq;
}

function demand(holds, form, answer) {
  if (holds) return;
  const seen = answer instanceof Promise ? "a promise inside the answer" : describe(answer);
  throw new AnswerFault(`${form}; it answered ${seen}`);
}

function describe(answer) {
  if (Array.isArray(answer)) return `a list of ${answer.length}`;
  if (isObject(answer)) return `an object with ${Object.keys(answer).join(", ") || "no members"}`;
  return String(answer);
}
