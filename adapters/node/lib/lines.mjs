// Bytes in, whole lines out.

const LINE_FEED = 0x0a;

/**
 * Splits a byte stream at 0x0A and at nothing else. Characters are decoded later, from whole
 * lines, so one that arrives in two chunks stays whole; U+2028 and CR are ordinary content here.
 * A line's pieces are joined once, when it is complete: a 64 MiB line costs 64 MiB of copying.
 */
export class LineSplitter {
  #pieces = [];

  /** Takes the next chunk; returns the lines it completed, as Buffers without their line feed. */
  push(chunk) {
    const lines = [];
    let start = 0;
    for (let end = chunk.indexOf(LINE_FEED); end !== -1; end = chunk.indexOf(LINE_FEED, start)) {
      this.#pieces.push(chunk.subarray(start, end));
      lines.push(Buffer.concat(this.#pieces));
      this.#pieces = [];
      start = end + 1;
    }
    if (start < chunk.length) this.#pieces.push(chunk.subarray(start));
    return lines;
  }

  /** How many bytes of an unfinished line are waiting. */
  get pending() {
    return this.#pieces.reduce((total, piece) => total + piece.length, 0);
  }
}
