// One conversation: requests in, answers out. Knows no stream and no process exit.

import { isAbsolute } from "node:path";
import { inspect } from "node:util";
import { AnswerFault, CODE, Refused, RequestError } from "./errors.mjs";
import { encode, wellFormed } from "./json.mjs";
import { nothing, pick, STORE_METHODS } from "./store-methods.mjs";
import { isDeclared, isObject } from "./subject.mjs";

const PROTOCOL = "1";
const KIT = "1.0";
const ERROR_MESSAGE_CHARS_MAX = 4000;
const CLOSED_STORES_KEPT_MAX = 64;

/** Where the store's own exception is its answer: the bench asks what a reader gets to see. */
const THROWING_ANSWERS = new Set(["face/read", "face/reopen", "face/seed"]);

export class Session {
  #subject;
  #open = new Map(); // store id -> the author's store
  // A closed store is still asked: if it answers as if it were open, the bench must see that. Only
  // the newest are kept; of an older one the id alone remains (null), and the SDK refuses.
  #closed = new Map();
  #closedKept = [];
  #opened = 0;

  constructor(subject) {
    this.#subject = subject;
  }

  /** Answers one request `{ id, method, params? }` with the text of one line. Never throws. */
  async answer({ id, method, params = {} }) {
    try {
      if (!isObject(params)) throw new RequestError(CODE.badParams, "params must be an object");
      const result = await this.#call(method, params);
      return encode({ jsonrpc: "2.0", id, result });
    } catch (error) {
      return errorLine(id, errorOf(method, error));
    }
  }

  /** Closes whatever is still open, once; a store that cannot close is only logged. */
  async closeAll() {
    const stores = [...this.#open.values()];
    this.#open.clear();
    for (const store of stores) {
      try {
        await store.close?.();
      } catch (error) {
        console.error(error);
      }
    }
  }

  async #call(method, params) {
    switch (method) {
      case "initialize": return this.#introduce();
      case "store/open": return this.#openStore(await this.#hook("open"), method);
      case "store/attach": return this.#openStore(await this.#hook("attach", locationIn(params)), method);
      case "store/close": return this.#close(params);
      case "store/destroy": return nothing("destroy")(await this.#hook("destroy", locationIn(params)));
      case "shutdown": await this.closeAll(); return {};
      default: return STORE_METHODS.has(method)
        ? this.#callStore(method, params)
        : this.#callRegistered(method, params);
    }
  }

  #introduce() {
    const { name, version, language = "javascript", homepage, capabilities, faces, limits, server } = this.#subject;
    const subject = { name, version, language, homepage };
    return { protocol: PROTOCOL, kit: KIT, subject, pid: process.pid, capabilities, faces, limits, server };
  }

  #openStore(answer, method) {
    const hook = method.split("/")[1];
    if (!isObject(answer) || !isObject(answer.store)) {
      throw new AnswerFault(`${hook} must answer { store }, an object with the store's methods`);
    }
    const { store, location, root } = answer;
    if (root !== undefined && !(typeof root === "string" && isAbsolute(root))) {
      throw new AnswerFault(`${hook} answered a root that is not an absolute path: ${inspect(root)}`);
    }
    this.#opened += 1;
    const id = `store-${this.#opened}`;
    this.#open.set(id, store);
    return method === "store/open" ? { store: id, location, root } : { store: id };
  }

  async #close(params) {
    const id = idIn(params);
    if (this.#closed.get(id) === null) return {};
    const answer = await this.#onStore(params, (store) => call(store, "close", "store/close"));
    nothing("close")(answer);
    if (this.#open.has(id)) {
      this.#closed.set(id, this.#open.get(id));
      this.#open.delete(id);
      this.#closedKept.push(id);
      if (this.#closedKept.length > CLOSED_STORES_KEPT_MAX) this.#closed.set(this.#closedKept.shift(), null);
    }
    return {};
  }

  async #callStore(method, params) {
    const { op, needs, takes, answer } = STORE_METHODS.get(method);
    const { capabilities } = this.#subject;
    if (!capabilities.mailbox && !capabilities.queue) throw notServed(method, "neither mailbox nor queue is declared");
    if (needs && !capabilities[needs]) throw notServed(method, `${needs} is not declared`);
    const args = pickOrRefuse(params, takes);
    return answer(await this.#onStore(params, (store) =>
      op === "tombstone" ? this.#hook(op, store, args) : call(store, op, method, args)));
  }

  /** Runs the author's code on the store that is asked; on a closed one, what it throws is `closed`. */
  async #onStore(params, run) {
    const id = idIn(params);
    const store = this.#open.get(id) ?? this.#closed.get(id);
    if (!store) throw new Refused("closed", `no store is open as ${id}`);
    try {
      return await run(store);
    } catch (error) {
      if (!this.#closed.has(id) || error instanceof Refused || error instanceof RequestError) throw error;
      throw new Refused("closed", `the store is closed (${told(error)})`);
    }
  }

  async #callRegistered(method, params) {
    const methods = this.#subject.methods ?? {};
    if (!Object.hasOwn(methods, method)) throw notServed(method, "no such method is registered");
    if (!isDeclared(this.#subject, method)) throw notServed(method, "its capability is not declared");
    const run = (store) => methods[method](params, { store });
    const answer = Object.hasOwn(params, "store") ? await this.#onStore(params, run) : await run();
    return method === "face/read" ? readAnswer(answer) : registeredAnswer(method, answer);
  }

  #hook(name, ...args) {
    if (this.#subject[name] === undefined) throw notServed(name, `the subject has no method ${name}`);
    return this.#subject[name](...args);
  }
}

/** An error answer for a line that carried no usable request. */
export function errorLine(id, { code, message, data }) {
  const text = wellFormed(message.slice(0, ERROR_MESSAGE_CHARS_MAX));
  return JSON.stringify({ jsonrpc: "2.0", id, error: { code, message: text, data } });
}

function errorOf(method, error) {
  if (error instanceof RequestError) return { code: error.code, message: error.message };
  if (error instanceof Refused) return refusal(error);
  const message = told(error);
  console.error(`storeproof: ${method} failed:`, error);
  if (!THROWING_ANSWERS.has(method)) return { code: CODE.fault, message };
  // Here any other error code counts as the store's answer. An answer that cannot be written is
  // not one, so it takes the code that the protocol keeps out of that rule.
  if (error instanceof AnswerFault) return { code: CODE.notReadable, message };
  return { code: CODE.refused, message, data: { reason: "threw" } };
}

function told(error) {
  return error instanceof Error ? `${error.name}: ${error.message}` : `thrown: ${inspect(error)}`;
}

function refusal({ reason, message, data }) {
  try {
    return { code: CODE.refused, message, data: JSON.parse(encode({ ...data, reason })) };
  } catch (error) {
    return { code: CODE.fault, message: `the refusal's own data: ${error.message}` };
  }
}

function readAnswer(answer) {
  if (!isObject(answer) || !("answer" in answer)) {
    throw new AnswerFault("face/read must answer { answer, disclosures? }");
  }
  // A JavaScript reader says "nothing there" with undefined; on the wire that word is null.
  return { answer: answer.answer ?? null, disclosures: answer.disclosures };
}

function registeredAnswer(method, answer) {
  if (answer === undefined || answer === null) return {};
  if (!isObject(answer)) throw new AnswerFault(`${method} must answer an object; it answered ${inspect(answer)}`);
  return answer;
}

function call(store, op, method, args) {
  if (typeof store[op] !== "function") throw notServed(method, `the store has no method ${op}`);
  return store[op](args);
}

function idIn(params) {
  if (typeof params.store !== "string") throw new RequestError(CODE.badParams, "store must be a string");
  return params.store;
}

function locationIn(params) {
  if (!Object.hasOwn(params, "location")) throw new RequestError(CODE.badParams, "location is missing");
  return params.location;
}

function pickOrRefuse(params, takes) {
  const { picked, wrong } = pick(params, takes);
  if (wrong) throw new RequestError(CODE.badParams, wrong);
  return picked;
}

function notServed(method, why) {
  return new RequestError(CODE.notServed, `${method} is not served: ${why}`);
}
