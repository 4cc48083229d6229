// The process around a session: stdin, stdout, order, end.

import { CODE } from "./errors.mjs";
import { decode } from "./json.mjs";
import { LineSplitter } from "./lines.mjs";
import { errorLine, Session } from "./session.mjs";
import { checkSubject, isObject } from "./subject.mjs";

/** How long calls in flight and closing stores may take once stdin has ended, in milliseconds. */
const END_WAIT_MS_MAX = 10_000;

let isServing = false;

/** Serves a subject on stdin and stdout until shutdown or the end of stdin. Call it once. */
export function serve(subject) {
  checkSubject(subject);
  if (isServing) throw new Error("serve was already called: stdin can be served once");
  isServing = true;
  if (process.stdin.isTTY) {
    const hint = `storeproof doctor -- node ${process.argv[1]}`;
    console.error(`${subject.name} speaks JSON-RPC on stdin and stdout. Try: ${hint}`);
  }

  const send = takeStdout();
  const session = new Session(subject);
  const splitter = new LineSplitter();
  let tail = Promise.resolve(); // settles when everything taken so far is answered
  let isOver = false;

  const take = (line) => {
    if (isOver) return;
    const { request, complaint } = read(line);
    if (complaint) tail = tail.then(() => send(complaint));
    if (!request) return;
    const isLast = request.method === "shutdown";
    const answer = async () => send(await session.answer(request));
    if (subject.capabilities.concurrent && !isLast) {
      const answered = answer();
      tail = tail.then(() => answered);
    } else {
      tail = tail.then(answer);
    }
    if (isLast) end();
  };

  const end = () => {
    if (isOver) return;
    isOver = true;
    setTimeout(giveUp, END_WAIT_MS_MAX).unref();
    // `send` resolves when its line has left the process, so the last answer is out before exit.
    tail.then(() => session.closeAll()).then(() => process.exit(0));
  };

  process.stdin.on("data", (chunk) => splitter.push(chunk).forEach(take));
  process.stdin.on("error", end);
  process.stdin.on("end", () => {
    if (splitter.pending > 0 && !isOver) console.error("storeproof: stdin ended inside a line, which was dropped");
    end();
  });
}

/**
 * Keeps stdout for the protocol: from now on whatever else writes there, console.log included,
 * goes to stderr. Returns the only way left to write a line.
 */
function takeStdout() {
  const { stdout, stderr } = process;
  const write = stdout.write.bind(stdout);
  stdout.write = (...args) => stderr.write(...args);
  stdout.on("error", (error) => {
    if (error.code !== "EPIPE") console.error("storeproof: stdout failed:", error);
    process.exit(error.code === "EPIPE" ? 0 : 1);
  });
  // Nobody reads the log any more: no reason for a store to die.
  stderr.on("error", () => {});
  return (line) => new Promise((resolve) => write(`${line}\n`, resolve));
}

/** Reads one line: a request, a complaint to send back, or neither (blank lines, notifications). */
function read(line) {
  if (line.every(isBlank)) return {};
  let message;
  try {
    message = decode(line);
  } catch (error) {
    const text = `this line is not JSON in UTF-8: ${error.message}`;
    return { complaint: errorLine(null, { code: CODE.notReadable, message: text }) };
  }
  const isCall = isObject(message) && message.jsonrpc === "2.0" && typeof message.method === "string";
  if (isCall && !Object.hasOwn(message, "id")) return {};
  if (isCall && Number.isSafeInteger(message.id)) return { request: message };
  const id = Number.isSafeInteger(message?.id) ? message.id : null;
  const text = 'a request is one object with jsonrpc: "2.0", an integer id and a method; batches are not served';
  return { complaint: errorLine(id, { code: CODE.notARequest, message: text }) };
}

function isBlank(byte) {
  return byte === 0x20 || byte === 0x09 || byte === 0x0d;
}

function giveUp() {
  console.error(`storeproof: calls were still running ${END_WAIT_MS_MAX} ms after the last request`);
  process.exit(1);
}
