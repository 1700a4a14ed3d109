/**
 * How far a campaign is: a bar where a person looks on, a plain line now and then where none does.
 *
 * @module
 */
// @ts-types="@types/cli-progress"
import type cliProgress from "cli-progress";
import process from "node:process";
import { createBars } from "../../examples/lib/bars.ts";

/** Between two plain lines. */
const PLAIN_INTERVAL_MS = 10_000;
/** The bar counts shares, as a campaign may end by its seeds or by the clock. */
const SHARES = 1_000;

/** How far it is. */
export interface Position {
  readonly done: number;
  readonly failed: number;
  readonly eventsPerMs: number;
}

/** When it ends: after so many runs, or after so long, whichever comes first. */
export interface Limits {
  readonly runs: number;
  readonly timeMs: number;
}

/** See the module. */
export class CampaignProgress implements Disposable {
  readonly #limits: Limits;
  readonly #startMs = performance.now();
  readonly #bars: cliProgress.MultiBar | undefined;
  readonly #bar: cliProgress.SingleBar | undefined;
  #writtenMs = performance.now();

  constructor(limits: Limits) {
    this.#limits = limits;
    if (!Deno.stderr.isTerminal()) return;
    this.#bars = createBars(process.stderr, "{bar} {text}");
    this.#bar = this.#bars.create(SHARES, 0, { text: "" });
  }

  /** Since the beginning. */
  get elapsedMs(): number {
    return performance.now() - this.#startMs;
  }

  /** Says how far it is; call as often as you like. */
  update(position: Position): void {
    if (this.#bar !== undefined) {
      this.#bar.update(Math.floor(SHARES * this.#share(position)), { text: this.#text(position) });
    } else if (performance.now() - this.#writtenMs >= PLAIN_INTERVAL_MS) {
      this.#writtenMs = performance.now();
      console.error(this.#text(position));
    }
  }

  /** Prints a line that stays, on standard output. */
  note(line: string): void {
    if (this.#bars !== undefined && Deno.stdout.isTerminal()) this.#bars.log(`${line}\n`);
    else console.log(line);
  }

  [Symbol.dispose](): void {
    this.#bars?.stop();
  }

  #share({ done }: Position): number {
    const { runs, timeMs } = this.#limits;
    return Math.min(1, Math.max(done / runs, this.elapsedMs / timeMs));
  }

  #text(position: Position): string {
    const { done, failed, eventsPerMs } = position;
    const { runs } = this.#limits;
    const share = this.#share(position);
    const leftMs = share === 0 ? Infinity : this.elapsedMs * (1 - share) / share;
    const seeds = Number.isFinite(runs) ? `${done}/${runs} seeds` : `${done} seeds`;
    const perSecond = (1_000 * done / this.elapsedMs).toFixed(1);
    return `${seeds}, ${perSecond}/s, ${eventsPerMs.toFixed(0)} events/ms of a core, ` +
      `${failed} failed, ${durationText(leftMs)} left`;
  }
}

/** For people: `3:05` or `1:02:03`. */
function durationText(durationMs: number): string {
  if (!Number.isFinite(durationMs)) return "?";
  const seconds = Math.round(durationMs / 1_000);
  const two = (n: number) => String(n).padStart(2, "0");
  const [h, m, s] = [Math.floor(seconds / 3_600), Math.floor(seconds / 60) % 60, seconds % 60];
  return h > 0 ? `${h}:${two(m)}:${two(s)}` : `${m}:${two(s)}`;
}
