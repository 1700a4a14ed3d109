/**
 * The current stage of the program and its duration: a line that is redrawn, or, outside a
 * terminal, written now and then.
 */
import type { StatusLine } from "../lib/status_line.ts";

const SHOW_EVERY_MS = 250;
const MS_PER_SECOND = 1_000;

/** The current stage of a program. */
export class Stages implements Disposable {
  readonly #status: Pick<StatusLine, "show">;
  readonly #timer: ReturnType<typeof setInterval>;
  #text: () => string = () => "";
  #sinceMs = performance.now();

  constructor(status: Pick<StatusLine, "show">) {
    this.#status = status;
    this.#timer = setInterval(() => this.#show(), SHOW_EVERY_MS);
  }

  /**
   * Begins another stage.
   * @param text The text before its duration.
   */
  begin(text: string | (() => string)): void {
    this.#text = typeof text === "string" ? () => text : text;
    this.#sinceMs = performance.now();
    this.#show();
  }

  [Symbol.dispose](): void {
    clearInterval(this.#timer);
  }

  #show(): void {
    const text = this.#text();
    if (text === "") return;
    const seconds = (performance.now() - this.#sinceMs) / MS_PER_SECOND;
    this.#status.show(`${text}: ${seconds.toFixed(1)} s`);
  }
}
