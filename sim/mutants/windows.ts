/** Wrong windows of ephemeral data sharing. */
import { SlidingWindow } from "../../actors/cache/sliding_window.ts";
import { changed, type Mutant, PerInstance } from "./mutant.ts";

/** The mutants of this module. */
export const WINDOW_MUTANTS: readonly Mutant[] = [
  {
    name: "evict-without-pointers",
    wrong: "a window that evicts without moving pointers",
    workload: "sharing",
    install: () => {
      const readers = new PerInstance<SlidingWindow<unknown>, Set<string>>(() => new Set());
      return changed(SlidingWindow.prototype as SlidingWindow<unknown>, ({ push, read }) => ({
        read(reader) {
          readers.of(this).add(reader);
          return read.call(this, reader);
        },
        // Behaves as if readers' positions counted from the back of the window, and stayed when it moves.
        push(value, bytes) {
          const before = this.length;
          const behind = [...readers.of(this)].filter((reader) => !this.atFront(reader));
          push.call(this, value, bytes);
          for (let evicted = before + 1 - this.length; evicted > 0; evicted--) {
            for (const reader of behind) read.call(this, reader);
          }
        },
      }));
    },
  },
  {
    name: "evict-nothing",
    wrong: "a window that evicts nothing",
    workload: "sharing",
    install: () => {
      return changed(SlidingWindow.prototype as SlidingWindow<unknown>, ({ push, resize }) => ({
        push(value, bytes) {
          resize.call(this, Infinity);
          push.call(this, value, bytes);
        },
      }));
    },
  },
  {
    name: "join-at-front",
    wrong: "a window whose new readers start after its newest item",
    workload: "sharing",
    install: () => {
      const readers = new PerInstance<SlidingWindow<unknown>, Set<string>>(() => new Set());
      return changed(SlidingWindow.prototype as SlidingWindow<unknown>, ({ read }) => ({
        read(reader) {
          const seen = readers.of(this);
          const isNew = !seen.has(reader);
          seen.add(reader);
          let found = read.call(this, reader);
          if (!isNew) return found;
          while (!this.atFront(reader)) found = read.call(this, reader);
          return found;
        },
      }));
    },
  },
  {
    name: "skip-in-silence",
    wrong: "a window that does not report what a reader has missed",
    workload: "sharing",
    install: () => {
      return changed(SlidingWindow.prototype as SlidingWindow<unknown>, ({ read }) => ({
        read(reader) {
          const found = read.call(this, reader);
          return found && { ...found, skipped: 0 };
        },
      }));
    },
  },
];
