/**
 * Wrong ways of having as many workers as are wanted.
 *
 * @module
 */
import { Autoscaler } from "../../actors/dispatcher/autoscaler.ts";
import { LeatError } from "../../core/error.ts";
import { SimFleet } from "../fleet.ts";
import { changed, type Mutant, PerInstance } from "./mutant.ts";

/** How often an undecided one says the same, in looks. */
const LOOKS_ALIKE = 5;

/** See the module. */
export const SCALING_MUTANTS: readonly Mutant[] = [
  {
    name: "stop-undrained",
    wrong: "a scaler that kills workers instead of waiting until clients have what they hold",
    workload: "autoscaling",
    seed: 14,
    crashes: [],
    install: () => changed(SimFleet.prototype, { drain: () => Promise.resolve(true) }),
  },
  {
    name: "start-two",
    wrong: "a scaler that starts two workers for each that is missing",
    workload: "autoscaling",
    crashes: [],
    install: () => {
      const { start } = SimFleet.prototype;
      return changed(SimFleet.prototype, {
        async start() {
          await Promise.all([start.call(this), start.call(this)]);
        },
      });
    },
  },
  {
    name: "doubt-starts",
    wrong: "a scaler that takes starts for failed, and waits longer after each",
    workload: "autoscaling",
    crashes: [],
    install: () => {
      const { start } = SimFleet.prototype;
      return changed(SimFleet.prototype, {
        async start() {
          await start.call(this);
          throw new LeatError("deadline_exceeded", "It took too long");
        },
      });
    },
  },
  {
    name: "want-more-and-less",
    seed: 2,
    wrong: "a dispatcher that wants a worker more and a worker less by turns",
    workload: "autoscaling",
    crashes: [],
    install: () => {
      const { observe } = Autoscaler.prototype;
      const looks = new PerInstance<Autoscaler, { count: number }>(() => ({ count: 0 }));
      return changed(Autoscaler.prototype, {
        observe(nowMs, signs) {
          const said = observe.call(this, nowMs, signs);
          const turn = Math.floor(looks.of(this).count++ / LOOKS_ALIKE) % 2;
          return { ...said, wanted: 1 + turn };
        },
      });
    },
  },
];
