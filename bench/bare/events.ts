/**
 * Events in virtual time, taken from a binary heap by their times, each in a macrotask of its own
 * and each scheduling the next of its kind: the overhead of a simulator.
 */

import process from "node:process";
import { type Load, printMeasured } from "./load.ts";

/** Waiting events at any time. */
const PENDING = 64;
/** Macrotasks queued at a time. */
const QUEUED = 32;

/** The load; its unit is an event, in CPU time. */
export function open(): Load {
  const heap: number[] = [];
  for (let i = 0; i < PENDING; i++) push(heap, i);
  let done = 0;
  const next = () => {
    const time = pop(heap);
    push(heap, time + 1 + (Math.imul(++done, 0x9e3779b1) >>> 26));
  };
  return {
    async window(ms) {
      const before = process.threadCpuUsage();
      const doneBefore = done;
      let cpuMs = 0;
      while (cpuMs < ms) {
        await new Promise<void>((resolve) => {
          for (let i = 1; i < QUEUED; i++) setImmediate(next);
          setImmediate(() => {
            next();
            resolve();
          });
        });
        const { user, system } = process.threadCpuUsage(before);
        cpuMs = (user + system) / 1_000;
      }
      return (done - doneBefore) / cpuMs * 1_000;
    },
    [Symbol.asyncDispose]: () => Promise.resolve(),
  };
}

function push(heap: number[], time: number): void {
  let at = heap.length;
  heap.push(time);
  while (at > 0) {
    const parent = (at - 1) >> 1;
    if (heap[parent]! <= time) break;
    heap[at] = heap[parent]!;
    at = parent;
  }
  heap[at] = time;
}

function pop(heap: number[]): number {
  const first = heap[0]!;
  const last = heap.pop()!;
  let at = 0;
  for (;;) {
    let child = 2 * at + 1;
    if (child >= heap.length) break;
    if (child + 1 < heap.length && heap[child + 1]! < heap[child]!) child++;
    if (heap[child]! >= last) break;
    heap[at] = heap[child]!;
    at = child;
  }
  heap[at] = last;
  return first;
}

if (import.meta.main) await printMeasured("bare events", "events/s of a core", open);
