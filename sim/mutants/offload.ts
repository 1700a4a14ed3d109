/** Wrong parts of the conditional operator, which prepares elements locally and remotely. */
import { END } from "../../data/iterator.ts";
import { Counters } from "../../offload/conditional/counters.ts";
import { EpochSplits } from "../../offload/conditional/epoch_splits.ts";
import { DeliveredSplits, type DeliveredSplitsState } from "../../offload/conditional/ledger.ts";
import { LocalSide } from "../../offload/conditional/local_side.ts";
import { RemoteSide } from "../../offload/conditional/remote_side.ts";
import { UpperPart } from "../../offload/conditional/upper_part.ts";
import { CandidateControl } from "../../offload/candidate_control.ts";
import { changed, type Mutant, PerInstance } from "./mutant.ts";

/** The mutants of this module. */
export const OFFLOAD_MUTANTS: readonly Mutant[] = [
  {
    name: "ratio-drifts",
    wrong: "a conditional operator that counts each element that the trainer prepared twice",
    workload: "offload",
    seed: 222,
    install: () =>
      changed(Counters.prototype, ({ count }) => ({
        count(side) {
          count.call(this, side);
          if (side === "local") count.call(this, side);
        },
      })),
  },
  {
    name: "taken-by-both-sides",
    wrong: "a conditional operator that takes an element again from the other side",
    workload: "offload",
    install: () =>
      changed(DeliveredSplits.prototype, ({ note }) => ({
        note(sequence, index) {
          note.call(this, sequence, index);
          return true;
        },
      })),
  },
  {
    name: "fallback-forgets",
    wrong: "a local side that forgets the splits of a service that failed",
    workload: "offload",
    install: () => changed(LocalSide.prototype, { add() {} }),
  },
  {
    name: "fallback-out-of-order",
    wrong: "a local side that continues its split although an earlier one comes back to it",
    workload: "offload",
    install: () =>
      changed(LocalSide.prototype, ({ restart, add }) => ({
        restart(queue) {
          if (this.isEmpty) restart.call(this, queue);
          else add.call(this, queue.filter((at) => !this.queue.includes(at)));
        },
      })),
  },
  {
    name: "counts-ahead",
    wrong: "a remote side that counts one element too many, so that the trainer skips it",
    workload: "offload",
    seed: 11,
    install: () =>
      changed(RemoteSide.prototype, ({ next }) => ({
        async next() {
          const item = await next.call(this);
          if (item === END || item.kind !== "element") return item;
          return { ...item, place: { ...item.place, index: item.place.index + 1 } };
        },
      })),
  },
  {
    name: "stale-position",
    wrong: "a conditional operator that saves which splits are whole, but not the parts of others",
    workload: "offload",
    install: () =>
      changed(DeliveredSplits.prototype, ({ save }) => ({
        save(): DeliveredSplitsState {
          return { ...save.call(this), given: [] };
        },
      })),
  },
  {
    name: "exchange-skips",
    wrong: "a client that skips the first element of each split which workers prepared in part",
    workload: "exchange",
    install: () =>
      changed(EpochSplits.prototype, ({ openUpper }) => ({
        openUpper(lower, split, read, onRemainder) {
          let isFirst = true;
          const skipping = async () => {
            if (isFirst) await read();
            isFirst = false;
            return await read();
          };
          return openUpper.call(this, lower, split, skipping, onRemainder);
        },
      })),
  },
  {
    name: "exchange-drops-rows",
    wrong: "a client that drops the last rows of each split which workers prepared in part",
    workload: "exchange",
    install: () =>
      changed(UpperPart.prototype, ({ next }) => ({
        async next() {
          const item = await next.call(this);
          if (item === END || item.kind !== "remainder") return item;
          return { kind: "split_end", place: item.place };
        },
      })),
  },
  {
    name: "exchange-counts-anew",
    wrong: "a ledger that counts the elements of a split from 0 when another candidate prepares it",
    workload: "exchange",
    install: () =>
      changed(DeliveredSplits.prototype, ({ note }) => ({
        note(sequence, index) {
          return note.call(this, sequence, index) || index === 0 && !this.isDone(sequence);
        },
      })),
  },
  {
    name: "profile-stale",
    wrong: "a trainer that believes its profile, whatever it measures",
    workload: "decisions",
    install: () => changed(CandidateControl.prototype, { observe: () => false }),
  },
  {
    name: "decision-never-undone",
    wrong: "a trainer that never comes back to a candidate that it has left",
    workload: "decisions",
    install: () => {
      const left = new PerInstance<CandidateControl, Set<string | null>>(() => new Set());
      return changed(CandidateControl.prototype, ({ observe }) => ({
        observe(throughput, among) {
          const before = this.candidate;
          const isChanged = observe.call(this, throughput, among);
          left.of(this).add(before);
          if (!isChanged || !left.of(this).has(this.candidate)) return isChanged;
          this.resume(before);
          return false;
        },
      }));
    },
  },
];
