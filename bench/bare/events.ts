/**
 * Measures the overhead of a simulator: events in virtual time come from a binary heap in the order of
 * their times. Each runs in its own macrotask and schedules another event.
 */

import process from "node:process";
import { type Load, printMeasured } from "./load.ts";

/** How many events are in the heap. */
const PENDING = 64;
/** How many macrotasks are queued at a time. */
const QUEUED = 32;

/** Opens the load, whose unit is an event. Its rate is per second of CPU time. */
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
  let index = heap.length;
  heap.push(time);
  while (index > 0) {
    const parent = (index - 1) >> 1;
    if (heap[parent]! <= time) break;
    heap[index] = heap[parent]!;
    index = parent;
  }
  heap[index] = time;
}

function pop(heap: number[]): number {
  const first = heap[0]!;
  const last = heap.pop()!;
  let index = 0;
  for (;;) {
    let child = 2 * index + 1;
    if (child >= heap.length) break;
    if (child + 1 < heap.length && heap[child + 1]! < heap[child]!) child++;
    if (heap[child]! >= last) break;
    heap[index] = heap[child]!;
    index = child;
  }
  heap[index] = last;
  return first;
}

if (import.meta.main) await printMeasured("bare events", "events/s of a core", open);
