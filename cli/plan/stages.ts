/**
 * Shows the current stage of the program and its duration. In a terminal the line is redrawn,
 * elsewhere a line is written periodically.
 */
import type { StatusLine } from "../lib/status_line.ts";

const SHOW_EVERY_MS = 250;
const MS_PER_SECOND = 1_000;

/** Shows the current stage of a program. */
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
   * Begins the next stage.
   * @param text The text before the duration.
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
