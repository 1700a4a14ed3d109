/** A file of trace hashes, which proves that a change leaves every message of every run unchanged. */
import { LeatError } from "../../core/error.ts";
import { drawOptions } from "../workloads/swarm.ts";
import type { SeedOutcome, SeedRun } from "./seed_run.ts";

/** Number of hex digits kept of a hash. 64 bits distinguish some thousand runs. */
const DIGITS = 16;
const LINE = new RegExp(`^([a-z]+) ([0-9]+) ([0-9a-f]{${DIGITS}})$`);

/** Hashes by run. See {@linkcode runKey}. */
type RecordedHashes = ReadonlyMap<string, string>;

/** Yields the first `seeds` seeds of each workload, with the faults that each seed draws. */
export function* recordedRuns(workloads: readonly string[], seeds: number): Iterable<SeedRun> {
  let index = 0;
  for (const workload of workloads) {
    for (let seed = 1; seed <= seeds; seed++) {
      yield { index: index++, workload, options: drawOptions(BigInt(seed)) };
    }
  }
}

/** Returns the workload and the seed, as the file names them. */
export function runKey({ workload, options: { seed } }: SeedRun): string {
  return `${workload} ${seed}`;
}

/** Returns the recorded part of a run's hash; empty if the run did not end. */
export function recordedHash({ hash }: SeedOutcome): string {
  return hash.slice(0, DIGITS);
}

/** Returns the file's text, one line for each run. */
export function formatHashes(hashes: RecordedHashes): string {
  return [...hashes].map(([key, hash]) => `${key} ${hash}\n`).join("");
}

/** @throws LeatError `data_loss` naming an invalid line. */
export function parseHashes(text: string): RecordedHashes {
  const lines = text.trimEnd().split("\n");
  return new Map(lines.map((line, i) => {
    const [, workload, seed, hash] = LINE.exec(line) ?? [];
    if (hash !== undefined) return [`${workload} ${seed}`, hash];
    throw new LeatError(
      "data_loss",
      `Line ${i + 1} of the recorded hashes is ${JSON.stringify(line.slice(0, 80))}, not ` +
        "WORKLOAD SEED HASH; record them again with `deno task hashes --write`",
    );
  }));
}

/** A run whose hash differs from the recorded one. */
interface HashDifference {
  readonly key: string;
  /** `undefined` if the file has no such run. */
  readonly recorded: string | undefined;
  readonly found: string;
}

/** Returns the differences between recorded and actual hashes, in the order of the file. */
export function hashDifferences(
  recorded: RecordedHashes,
  found: RecordedHashes,
): readonly HashDifference[] {
  return [...found]
    .map(([key, hash]) => ({ key, recorded: recorded.get(key), found: hash }))
    .filter((each) => each.recorded !== each.found);
}

/** Describes a difference, and how to look at the run. */
export function differenceText({ key, recorded, found }: HashDifference): string {
  const [workload, seed] = key.split(" ");
  const was = recorded === undefined ? "nothing is recorded for it" : `recorded is ${recorded}`;
  return `seed ${seed} of ${workload} has the trace ${found}, but ${was}. ` +
    `See it with: deno task vopr --workload ${workload} --seed ${seed} --timeline`;
}
