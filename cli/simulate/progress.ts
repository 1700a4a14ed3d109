/** Shows the progress of the main job: bars in a terminal, occasional plain lines elsewhere. */

// @ts-types="@types/cli-progress"
import type cliProgress from "cli-progress";
import process from "node:process";
import type { Writable } from "node:stream";
import { createBars } from "../lib/bars.ts";

/** Where progress is drawn: standard error, or a stream that a test reads. */
type ProgressStream = Writable & { isTTY?: boolean };

/** How {@linkcode Progress} draws. */
interface ProgressOptions {
  /** The number of experiments. */
  experiments: number;
  /** Where to draw; default standard error, so that standard output holds only results. */
  stream?: ProgressStream;
  /** Shortest time between two plain lines about one run, in milliseconds; default 5,000. */
  plainIntervalMs?: number;
}

interface RunProgress {
  /** How many units are done. */
  done: number;
  /** Share of the trainer's time spent waiting for data, 0 to 1. */
  stallShare?: number;
  /** Batches per second, if the units of work are not batches. */
  throughput?: number;
}

interface Run {
  name: string;
  total: number;
  unit: string;
  startedMs: number;
  latest: RunProgress;
}

/** Draws progress; one implementation for a terminal, one for a log. */
interface View {
  beginExperiment(name: string, runs: number): void;
  beginRun(run: Run): void;
  update(run: Run): void;
  endRun(run: Run, summary: string | undefined): void;
  note(line: string): void;
  close(): void;
}

const PLAIN_INTERVAL_MS = 5_000;
/** A rate below this, per second, is shown per minute. */
const SLOW_RATE = 0.1;
const SECONDS_PER_MINUTE = 60;
const NAME_WIDTH = 34;
/** Shows the cursor and wraps long lines again, which the bars have switched off. */
const RESTORE_TERMINAL = "\x1b[?25h\x1b[?7h";

/**
 * Shows the progress of experiments. An experiment has several runs, and a run several units of work.
 *
 * If the stream is a terminal, it draws bars. Otherwise it writes a line when an experiment begins,
 * one when a run ends, and one every few seconds in between. The terminal is restored when the program
 * exits.
 */
export class Progress implements Disposable {
  readonly #view: View;
  #run: Run | undefined;
  #closed = false;

  constructor(options: ProgressOptions) {
    globalThis.addEventListener("unload", this.#closeOnUnload);
    const stream = options.stream ?? process.stderr;
    this.#view = stream.isTTY
      ? new BarView(stream, options.experiments)
      : new PlainView(stream, options.plainIntervalMs ?? PLAIN_INTERVAL_MS);
  }

  /** Begins an experiment of `runs` runs. The previous experiment counts as done. */
  beginExperiment(name: string, runs: number): void {
    this.#view.beginExperiment(name, runs);
  }

  /** Begins a run of `total` units of work. */
  beginRun(name: string, total: number, unit = "batches"): void {
    this.#run = { name, total, unit, startedMs: performance.now(), latest: { done: 0 } };
    this.#view.beginRun(this.#run);
  }

  /** Updates the current run. It may be called as often as you like. */
  update(progress: RunProgress): void {
    if (this.#run === undefined) return;
    this.#run.latest = progress;
    this.#view.update(this.#run);
  }

  /** Ends the current run. `summary` is a text about its result, for logs. */
  endRun(summary?: string): void {
    if (this.#run === undefined) return;
    this.#view.endRun(this.#run, summary);
    this.#run = undefined;
  }

  /** Writes a line that stays. */
  note(line: string): void {
    this.#view.note(line);
  }

  /** Stops drawing and restores the terminal. Calling it again does nothing. */
  close(): void {
    if (this.#closed) return;
    this.#closed = true;
    this.#view.close();
    globalThis.removeEventListener("unload", this.#closeOnUnload);
  }

  [Symbol.dispose](): void {
    this.close();
  }

  readonly #closeOnUnload = () => this.close();
}

/** Draws three bars: experiments, runs of the current experiment, and work of the current run. */
class BarView implements View {
  readonly #stream: ProgressStream;
  readonly #bars: cliProgress.MultiBar;
  readonly #experiments: cliProgress.SingleBar;
  readonly #runs: cliProgress.SingleBar;
  readonly #work: cliProgress.SingleBar;
  #experimentsBegun = 0;

  constructor(stream: ProgressStream, experiments: number) {
    this.#stream = stream;
    this.#bars = createBars(stream, `{name} {bar} {value}/{total} {detail}`);
    this.#experiments = this.#bars.create(experiments, 0, payload("experiments", ""));
    this.#runs = this.#bars.create(0, 0, payload("", "runs"));
    this.#work = this.#bars.create(0, 0, payload("", ""));
  }

  beginExperiment(name: string, runs: number): void {
    this.#experiments.update(this.#experimentsBegun++, payload("experiments", ""));
    this.#runs.start(runs, 0, payload(name, "runs"));
  }

  beginRun(run: Run): void {
    this.#work.start(run.total, 0, payload(run.name, run.unit));
  }

  update(run: Run): void {
    this.#work.update(run.latest.done, payload(run.name, detail(run)));
  }

  endRun(): void {
    this.#runs.increment();
  }

  note(line: string): void {
    this.#bars.log(`${line}\n`);
  }

  close(): void {
    this.#bars.stop();
    this.#stream.write(RESTORE_TERMINAL);
  }
}

/** Writes lines for a log. */
class PlainView implements View {
  readonly #stream: ProgressStream;
  readonly #intervalMs: number;
  #experiment = "";
  #writtenMs = 0;

  constructor(stream: ProgressStream, intervalMs: number) {
    this.#stream = stream;
    this.#intervalMs = intervalMs;
  }

  beginExperiment(name: string, runs: number): void {
    this.#experiment = name;
    this.note(`${name}: ${runs} ${runs === 1 ? "run" : "runs"}`);
  }

  beginRun(): void {
    this.#writtenMs = performance.now();
  }

  update(run: Run): void {
    if (performance.now() - this.#writtenMs < this.#intervalMs) return;
    this.#writtenMs = performance.now();
    this.note(this.#line(run));
  }

  endRun(run: Run, summary: string | undefined): void {
    this.note(this.#line(run) + (summary === undefined ? "" : `: ${summary}`));
  }

  note(line: string): void {
    this.#stream.write(`${line}\n`);
  }

  close(): void {}

  #line(run: Run): string {
    return `${this.#experiment}: ${run.name}: ${run.latest.done}/${run.total} ${detail(run)}`;
  }
}

function payload(name: string, detail: string): { name: string; detail: string } {
  const cut = name.length > NAME_WIDTH ? `${name.slice(0, NAME_WIDTH - 1)}…` : name;
  return { name: cut.padEnd(NAME_WIDTH), detail };
}

function detail(run: Run): string {
  const seconds = (performance.now() - run.startedMs) / 1000;
  const { done, stallShare, throughput } = run.latest;
  const rate = throughput !== undefined
    ? `, ${throughput.toFixed(1)} batches/s`
    : seconds > 0
    ? `, ${rateText(done / seconds, run.unit)}`
    : "";
  const stall = stallShare === undefined ? "" : `, ${(stallShare * 100).toFixed(0)} % stalled`;
  return `${run.unit}${rate}${stall}`;
}

/** Formats a rate per second, or per minute if it is low. */
function rateText(perSecond: number, unit: string): string {
  return perSecond < SLOW_RATE
    ? `${(SECONDS_PER_MINUTE * perSecond).toFixed(1)} ${unit}/min`
    : `${perSecond.toFixed(1)} ${unit}/s`;
}
