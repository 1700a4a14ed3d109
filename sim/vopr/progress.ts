/**
 * How far a campaign is: a bar where a person looks on, a plain line now and then where none does.
 *
 * @module
 */
// @ts-types="@types/cli-progress"
import type cliProgress from "cli-progress";
import process from "node:process";
import { createBars } from "../../examples/lib/bars.ts";
import { counted } from "../../examples/lib/counted.ts";

/** Between two plain lines. */
const PLAIN_INTERVAL_MS = 10_000;
/** The bar counts shares, as a campaign may end by its seeds or by the clock. */
const SHARES = 1_000;

/** How far it is. */
export interface Position {
  readonly done: number;
  readonly failed: number;
  /** Left out where nobody counts events. */
  readonly eventsPerMs?: number;
}

/** When it ends: after so many runs, or after so long, whichever comes first. */
export interface Limits {
  readonly runs: number;
  readonly timeMs: number;
}

/** What it counts. */
export interface Wording {
  /** What one run is. Default `seed`. */
  readonly noun?: string;
  /** What has become of those that failed. Default `failed`. */
  readonly failed?: string;
}

/** See the module. */
export class CampaignProgress implements Disposable {
  readonly #limits: Limits;
  readonly #wording: Wording;
  readonly #startMs = performance.now();
  readonly #bars: cliProgress.MultiBar | undefined;
  readonly #bar: cliProgress.SingleBar | undefined;
  #writtenMs = performance.now();

  constructor(limits: Limits, wording: Wording = {}) {
    this.#limits = limits;
    this.#wording = wording;
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
    const { elapsedMs } = this;
    const text = () => progressText(position, this.#limits, elapsedMs, this.#wording);
    if (this.#bar !== undefined) {
      const share = shareOf(position, this.#limits, elapsedMs);
      this.#bar.update(Math.floor(SHARES * share), { text: text() });
    } else if (performance.now() - this.#writtenMs >= PLAIN_INTERVAL_MS) {
      this.#writtenMs = performance.now();
      console.error(text());
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
}

/** Which part of it is done, 0 to 1. */
function shareOf({ done }: Position, { runs, timeMs }: Limits, elapsedMs: number): number {
  return Math.min(1, Math.max(done / runs, elapsedMs / timeMs));
}

/** One line: how far it is, at which pace, and how long it may still take. */
export function progressText(
  position: Position,
  limits: Limits,
  elapsedMs: number,
  { noun = "seed", failed: failedText = "failed" }: Wording = {},
): string {
  const { done, failed, eventsPerMs } = position;
  const { runs } = limits;
  const share = shareOf(position, limits, elapsedMs);
  const leftMs = share === 0 ? Infinity : elapsedMs * (1 - share) / share;
  return [
    Number.isFinite(runs) ? `${done}/${counted(runs, noun)}` : counted(done, noun),
    `${(1_000 * done / elapsedMs).toFixed(1)}/s`,
    ...(eventsPerMs === undefined ? [] : [`${eventsPerMs.toFixed(0)} events/ms of a core`]),
    `${failed} ${failedText}`,
    `${durationText(leftMs)} left`,
  ].join(", ");
}

/** For people: `3:05` or `1:02:03`. */
function durationText(durationMs: number): string {
  if (!Number.isFinite(durationMs)) return "?";
  const seconds = Math.round(durationMs / 1_000);
  const two = (n: number) => String(n).padStart(2, "0");
  const [h, m, s] = [Math.floor(seconds / 3_600), Math.floor(seconds / 60) % 60, seconds % 60];
  return h > 0 ? `${h}:${two(m)}:${two(s)}` : `${m}:${two(s)}`;
}
