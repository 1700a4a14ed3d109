/** Figures of a part of a pipeline that runs here split by split, each as an iteration of its own. */
import type { PartStats } from "../../data/operator_instances.ts";
import { type IteratorStats, type OperatorStats, sumOf } from "../../data/iterators/stats.ts";

/** The iterator of a split. */
interface SplitRun {
  /** Whether it gives no more elements, so that its figures stay as they are. */
  readonly isOver: boolean;
  stats(): IteratorStats;
}

export class SplitStats implements PartStats {
  /** The operators of the part, in pre-order. */
  readonly #kinds: readonly string[];
  /** The sums of splits that are over, by the operator's place in the part. */
  readonly #past = new Map<number, OperatorStats>();
  /** The splits in progress, and how many operators of the part each runs. */
  readonly #open = new Map<SplitRun, number>();

  constructor(kinds: readonly string[]) {
    this.#kinds = kinds;
  }

  /** @param count How many operators of the part it runs, from the last one on. Others do not count. */
  add(run: SplitRun, count = this.#kinds.length): void {
    for (const [other, count] of this.#open) {
      if (!other.isOver) continue;
      this.#sum(other, count, this.#past);
      this.#open.delete(other);
    }
    this.#open.set(run, count);
  }

  /** `stats` of the part's operators, with what its splits counted. */
  addTo(stats: IteratorStats): OperatorStats[] {
    const all = new Map(this.#past);
    for (const [run, count] of this.#open) this.#sum(run, count, all);
    return stats.map((own, place) => {
      const { operator, number } = own;
      const ran = all.get(place);
      if (ran === undefined) return own;
      // What the last operator gives is counted where it is given, with what workers prepared.
      if (place > 0) return { ...ran, operator, number };
      return { ...own, bytesIn: own.bytesIn + ran.bytesIn, selfMs: own.selfMs + ran.selfMs };
    });
  }

  #sum(run: SplitRun, count: number, sums: Map<number, OperatorStats>): void {
    let from = 0;
    for (const stats of run.stats()) {
      // A split may have operators that the part has not.
      const place = this.#kinds.indexOf(stats.operator, from);
      if (place < 0 || place >= count) continue;
      from = place + 1;
      const before = sums.get(place);
      const bufferedBytes = (before?.bufferedBytes ?? 0) + (run.isOver ? 0 : stats.bufferedBytes);
      sums.set(place, { ...before === undefined ? stats : sumOf(before, stats), bufferedBytes });
    }
  }
}
