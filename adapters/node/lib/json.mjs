// JSON text in and out, without the silent losses of JSON.stringify.

import { AnswerFault } from "./errors.mjs";

// `ignoreBOM` keeps a byte-order mark in the text, where JSON.parse then refuses it.
const utf8 = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });

// With the `u` flag, pairs are one character, so this finds only surrogates that stand alone.
const LONE_SURROGATE = /\p{Cs}/u;

/** Decodes one line; throws where it is not UTF-8, not JSON, or holds half a surrogate pair. */
export function decode(bytes) {
  const text = utf8.decode(bytes);
  const value = JSON.parse(text);
  // An escaped lone surrogate parses, but could not be sent back as it is.
  if (text.includes("\\u") && /\\ud/i.test(text)) encode(value);
  return value;
}

/**
 * Writes a value as one line of JSON, or throws an AnswerFault where the text would say something
 * else than the value: NaN, infinities, undefined in a list, functions, Maps, lone surrogates.
 */
export function encode(value) {
  try {
    return JSON.stringify(value, refuseLoss);
  } catch (error) {
    if (error instanceof AnswerFault) throw error;
    throw new AnswerFault(`the answer cannot be written as JSON: ${error?.message}`, { cause: error });
  }
}

/** Replaces lone surrogates, for text that must go out whatever it holds: error messages. */
export function wellFormed(text) {
  return text.replace(/\p{Cs}/gu, "\uFFFD");
}

/** A JSON.stringify replacer that changes nothing; `this` is the object or list that holds `value`. */
function refuseLoss(key, value) {
  const loss = lossOf(value, this);
  if (loss) throw new AnswerFault(`the answer holds ${loss} under ${JSON.stringify(key)}`);
  if (LONE_SURROGATE.test(key)) {
    throw new AnswerFault(`the answer has a key with a lone surrogate: ${JSON.stringify(key)}`);
  }
  return value;
}

function lossOf(value, holder) {
  switch (typeof value) {
    case "number":
      return Number.isFinite(value) ? null : `${value}, which JSON would turn into null,`;
    case "string":
      return LONE_SURROGATE.test(value) ? "a string with a lone surrogate, which is not UTF-8," : null;
    case "undefined":
      return Array.isArray(holder) ? "undefined, which JSON would turn into null," : null;
    case "bigint":
      return "a BigInt (use Number(...) where it fits)";
    case "function":
    case "symbol":
      return `a ${typeof value}, which JSON cannot carry,`;
    default:
      return value instanceof Map || value instanceof Set
        ? "a Map or Set, which JSON would turn into {},"
        : null;
  }
}
