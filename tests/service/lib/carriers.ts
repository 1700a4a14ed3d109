/** The carriers of the service's tests, and shared helpers. */
import { LocalCluster, type LocalClusterOptions, type Tensor } from "../../../mod.ts";
import type { Carrier } from "../../../server/cluster/fleet.ts";
import { until } from "../../lib/until.ts";

/** Timings that keep tests short. */
const SHORT = {
  heartbeatMs: 100,
  clientRefreshMs: 20,
  logLevel: "off",
} as const;

/** Every carrier that runs on one host. */
export const CARRIERS: readonly Carrier[] = ["inline", "thread", "websocket"];

/** Whether every test runs on every carrier (`deno task test:carriers`). */
const ON_EVERY = Deno.args.includes("--every-carrier");

/**
 * One test in so many runs on threads, the others behind sockets: starting a cluster's threads takes
 * several times as long as most tests, and the conformance suite holds both carriers to the same
 * promises.
 */
const THREADS_EVERY = 4;

/**
 * Registers a test of the service: inline, and on one of the carriers that copy and wait, chosen by
 * the test's name to keep a run short; on all of them with `--every-carrier`.
 */
export function testOnEach(
  name: string,
  run: (
    start: (options?: LocalClusterOptions) => Promise<LocalCluster>,
  ) => Promise<void>,
): void {
  const chosen: Carrier = name.length % THREADS_EVERY === 0 ? "thread" : "websocket";
  const carriers = ON_EVERY ? CARRIERS : ["inline", chosen] as const;
  for (const carrier of carriers) testOn(carrier, name, run);
}

/** Registers a test that does not depend on the carrier. */
export function testInline(name: string, run: Parameters<typeof testOnEach>[1]): void {
  testOn("inline", name, run);
}

function testOn(carrier: Carrier, name: string, run: Parameters<typeof testOnEach>[1]): void {
  Deno.test(`${name} (${carrier})`, () =>
    run((options) =>
      LocalCluster.start({
        carrier,
        runners: hasRunnerThreads(carrier) ? "thread" : "inline",
        ...SHORT,
        ...options,
      })
    ));
}

/**
 * Whether pipelines run on threads of their own: each starts slower than most tests, so tests
 * behind sockets, with their nodes in one thread, run without them by default.
 */
function hasRunnerThreads(carrier: Carrier): boolean {
  return carrier === "thread" || ON_EVERY && carrier === "websocket";
}

/** The numbers in batches of numbers, in order of arrival. */
export async function numbersOf(
  batches: AsyncIterable<unknown>,
): Promise<number[]> {
  const numbers: number[] = [];
  for await (const batch of batches) {
    numbers.push(...(batch as Tensor).data as Float64Array);
  }
  return numbers;
}

/** Numbers from 0 to n - 1, each `times` times, ascending. */
export function upTo(n: number, times = 1): number[] {
  return Array.from({ length: n * times }, (_, i) => Math.floor(i / times));
}

/** Ascending. */
export function sorted(numbers: readonly number[]): number[] {
  return [...numbers].sort((a, b) => a - b);
}

/** Waits until the dispatcher has no job. */
export async function untilForgotten(cluster: LocalCluster): Promise<void> {
  await until(async () => (await cluster.describe()).jobs.length === 0);
}
