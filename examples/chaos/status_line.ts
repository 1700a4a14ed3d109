/**
 * A line that is drawn over in a terminal. Elsewhere it is left out, but for the lines that stay.
 *
 * @module
 */

/** Back to the line's beginning, and the line away. */
const CLEAR_LINE = "\r\x1b[K";
/** How often it is drawn at most, in ms. */
const DRAW_MS = 100;

/** See the module. Writes to standard error. */
export class StatusLine implements Disposable {
  readonly #isTerminal = Deno.stderr.isTerminal();
  #drawnMs = -Infinity;

  /** Draws the line over the one before. */
  show(line: string): void {
    if (!this.#isTerminal || performance.now() - this.#drawnMs < DRAW_MS) return;
    this.#drawnMs = performance.now();
    write(CLEAR_LINE + line.slice(0, Deno.consoleSize().columns - 1));
  }

  /** Writes a line that stays. */
  note(line: string): void {
    this.#clear();
    console.error(line);
  }

  [Symbol.dispose](): void {
    this.#clear();
  }

  #clear(): void {
    if (this.#isTerminal) write(CLEAR_LINE);
  }
}

function write(text: string): void {
  Deno.stderr.writeSync(new TextEncoder().encode(text));
}
