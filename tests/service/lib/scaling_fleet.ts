/** Fleets and states of a dispatcher for tests of scaling. */
import type { PoolScaling } from "../../../actors/dispatcher/protocol_scaling.ts";
import { autoscale, type DispatcherDescription, LeatError } from "../../../mod.ts";
import { START_TIMEOUT_MS } from "../../../server/cluster/scaler.ts";
import { until } from "../../lib/until.ts";

// ---------------------------------------------------------------------------------------------
// The scaler on a fleet of names

/** A fleet that starts and stops names at once, or fails on command. */
export class Names {
  readonly names: string[] = [];
  started = 0;
  failing = false;

  /** Its workers, as a dispatcher lists them. */
  listed(): Worker[] {
    return this.names.map((name) => worker(name));
  }

  start(): Promise<void> {
    if (this.failing) return Promise.reject(new LeatError("unavailable", "No more machines"));
    this.names.push(`w${this.started++}`);
    return Promise.resolve();
  }

  stop(name: string): Promise<void> {
    this.names.splice(this.names.indexOf(name), 1);
    return Promise.resolve();
  }
}

type Worker = DispatcherDescription["workers"][number];

export function worker(name: string, given: Partial<Worker> = {}): Worker {
  const activity = { state: "working", reason: null } as const;
  const ref = { node: name, path: "/worker" };
  return {
    name,
    ref,
    tags: [],
    alive: true,
    lastHeardMs: 0,
    tasks: 0,
    activity,
    figures: null,
    ...given,
  };
}

export function stateOf(
  wanted: number,
  workers: readonly Worker[] = [],
  pools: readonly PoolScaling[] = [],
): DispatcherDescription {
  const limits = { minWorkers: 0, maxWorkers: 9 };
  const scaling = { workers: 0, wanted, ...limits, text: "because", jobs: [], pools };
  return { clusterId: "c", scaling, workers, jobs: [] };
}

/** The number of a scaler's own workers next to others, after a few checks. */
export async function ownBeside(
  state: DispatcherDescription,
  tags?: readonly string[],
): Promise<number> {
  let looks = 0;
  const describe = () => Promise.resolve((looks++, state));
  const fleet = Object.assign(new Names(), tags === undefined ? {} : { tags });
  await using _scaler = autoscale({
    dispatcher: { describe },
    fleet,
    maxWorkers: 5,
    intervalMs: 1,
  });
  await until(() => looks > 5);
  return fleet.names.length;
}

/** Timers on a clock that the test moves. */
export function virtual() {
  const timers = new Set<{ readonly dueMs: number; readonly fn: () => void }>();
  const clock = {
    nowMs: 0,
    async pass(ms: number, look: () => void = () => {}): Promise<void> {
      const endMs = clock.nowMs + ms;
      for (;;) {
        await new Promise<void>((resolve) => setImmediate(resolve));
        look();
        const [next] = [...timers].sort((a, b) => a.dueMs - b.dueMs);
        if (next === undefined || next.dueMs > endMs) break;
        timers.delete(next);
        clock.nowMs = next.dueMs;
        next.fn();
      }
      clock.nowMs = endMs;
    },
  };
  const timer = (delayMs: number, fn: () => void) => {
    const entry = { dueMs: clock.nowMs + delayMs, fn };
    timers.add(entry);
    return { cancel: () => void timers.delete(entry) };
  };
  return { clock, timer };
}

/** Timers that fire at once, and a list of their delays, in ms. The limit of a start never fires. */
export function hurried() {
  const delays: number[] = [];
  const timer = (delayMs: number, fn: () => void) => {
    if (delayMs === START_TIMEOUT_MS) return { cancel: () => {} };
    delays.push(delayMs);
    const id = setTimeout(fn, 0);
    return { cancel: () => clearTimeout(id) };
  };
  return { delays, timer };
}
