// What an author hands to `serve`, checked once, before the first request.

const FLAGS = [
  "mailbox", "queue", "durable", "tenancy", "crossProcessSafe", "tombstone",
  "peek", "release", "renew", "concurrent",
];
const FAMILIES = ["memory", "bundle", "siteRules"];
const CLOCKS = ["caller", "wall"];

/** The capability that a method's namespace hangs on, for methods an author registers by name. */
const CAPABILITY_OF = new Map([
  ["memory", "memory"],
  ["bundle", "bundle"],
  ["rules", "siteRules"],
]);

const OWN_NAMESPACES = new Set(["store", "mailbox", "recipient"]);

/** Throws a TypeError that names the first thing wrong with a subject. */
export function checkSubject(subject) {
  must(isObject(subject), "serve takes one object: { name, version, capabilities, open, ... }");
  must(isText(subject.name), "subject.name must be a non-empty string");
  must(isText(subject.version), "subject.version must be a non-empty string");
  must(isObject(subject.capabilities), "subject.capabilities must be an object, for example { mailbox: true }");
  checkCapabilities(subject.capabilities);
  for (const hook of ["open", "attach", "destroy", "tombstone"]) {
    must(isOptional(subject[hook], "function"), `subject.${hook} must be a function`);
  }
  const faces = subject.faces ?? [];
  must(Array.isArray(faces), "subject.faces must be a list");
  for (const face of faces) {
    must(isObject(face) && isText(face.name), "each of subject.faces needs a name");
    must(face.kind === "get" || face.kind === "list", `face ${face.name}: kind must be "get" or "list"`);
  }
  checkMethods(subject.methods ?? {});
}

/** Whether the subject declares the capability that a registered method needs. */
export function isDeclared(subject, method) {
  const namespace = method.split("/")[0];
  if (namespace === "face") return (subject.faces ?? []).length > 0;
  if (!CAPABILITY_OF.has(namespace)) return true;
  const served = subject.capabilities[CAPABILITY_OF.get(namespace)];
  return Array.isArray(served) ? served.includes(method) : served === true;
}

export function isObject(value) {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

function checkCapabilities(capabilities) {
  for (const [word, value] of Object.entries(capabilities)) {
    if (word === "queue" && isObject(value)) continue;
    if (FLAGS.includes(word)) {
      must(isOptional(value, "boolean"), `capabilities.${word} must be true or false`);
    } else if (FAMILIES.includes(word)) {
      const isList = Array.isArray(value) && value.every(isText);
      must(isList || isOptional(value, "boolean"), `capabilities.${word} must be true or a list of method names`);
    } else if (word === "clock") {
      must(value === undefined || CLOCKS.includes(value), `capabilities.clock must be "caller" or "wall"`);
    } else {
      must(false, `capabilities.${word} is no capability; known: ${[...FLAGS, "clock", ...FAMILIES].join(", ")}`);
    }
  }
  must(
    !(capabilities.mailbox && capabilities.queue),
    "declare mailbox (a claim leases the box) or queue (a claim leases messages), not both",
  );
}

function checkMethods(methods) {
  must(isObject(methods), "subject.methods must be an object of functions, keyed by full method name");
  for (const [name, method] of Object.entries(methods)) {
    must(typeof method === "function", `subject.methods["${name}"] must be a function`);
    must(/^[a-z]+\/\w+$/i.test(name), `subject.methods["${name}"]: a full name looks like "memory/put"`);
    must(
      !OWN_NAMESPACES.has(name.split("/")[0]),
      `subject.methods["${name}"]: the SDK serves this one from the store or the subject`,
    );
  }
}

function isText(value) {
  return typeof value === "string" && value !== "";
}

function isOptional(value, type) {
  return value === undefined || typeof value === type;
}

function must(holds, message) {
  if (!holds) throw new TypeError(message);
}
