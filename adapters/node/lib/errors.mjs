// The ways a call can end without a result, and the JSON-RPC code of each.

/** JSON-RPC error codes the protocol gives a meaning to. */
export const CODE = Object.freeze({
  notReadable: -32700,
  notARequest: -32600,
  notServed: -32601,
  badParams: -32602,
  fault: -32603,
  refused: -32001,
});

/**
 * A refusal: the store answers "no" and says why. The bench judges it like any other answer.
 *
 * `reason` is the code the contract names (`lease_not_held`, `invalid_name`, ...). `data` holds
 * further members for the wire, such as `{ code }` beside the reason `bad_package`.
 */
export class Refused extends Error {
  constructor(reason, message = reason, data = {}) {
    if (typeof reason !== "string" || reason === "") {
      throw new TypeError("Refused needs a reason code, for example new Refused('lease_not_held')");
    }
    super(message);
    this.name = "Refused";
    this.reason = reason;
    this.data = data;
  }
}

/** A request the SDK itself turns down, with the JSON-RPC code that says why. */
export class RequestError extends Error {
  constructor(code, message) {
    super(message);
    this.name = "RequestError";
    this.code = code;
  }
}

/** What the author's method answered cannot go on the wire: a mistake in the adapter. */
export class AnswerFault extends Error {
  constructor(message, options) {
    super(message, options);
    this.name = "AnswerFault";
  }
}
