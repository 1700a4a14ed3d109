/** Scalers and dispatchers that keep a wrong number of workers. */
import { Autoscaler } from "../../actors/dispatcher/scaling/autoscaler.ts";
import { LeatError } from "../../core/error.ts";
import { SimFleet } from "../engine/fleet.ts";
import { changed, type Mutant, PerInstance } from "./mutant.ts";

/** Number of looks between two changes of an undecided autoscaler. */
const LOOKS_ALIKE = 5;

/** The mutants of this module. */
export const SCALING_MUTANTS: readonly Mutant[] = [
  {
    name: "stop-undrained",
    wrong: "a scaler that kills workers instead of draining them",
    workload: "autoscaling",
    seed: 110,
    crashes: [],
    install: () => changed(SimFleet.prototype, { drain: () => Promise.resolve(true) }),
  },
  {
    name: "start-two",
    wrong: "a scaler that starts two workers for each missing one",
    workload: "autoscaling",
    crashes: [],
    install: () =>
      changed(SimFleet.prototype, ({ start }) => ({
        async start() {
          await Promise.all([start.call(this), start.call(this)]);
        },
      })),
  },
  {
    name: "doubt-starts",
    wrong: "a scaler that treats starts as failed, and waits longer after each",
    workload: "autoscaling",
    crashes: [],
    install: () =>
      changed(SimFleet.prototype, ({ start }) => ({
        async start() {
          await start.call(this);
          throw new LeatError("deadline_exceeded", "It took too long");
        },
      })),
  },
  {
    name: "want-one",
    wrong: "a dispatcher that always wants one worker",
    workload: "autoscaling",
    crashes: [],
    install: () =>
      changed(Autoscaler.prototype, ({ observe }) => ({
        observe(nowMs, signs) {
          return { ...observe.call(this, nowMs, signs), wanted: 1 };
        },
      })),
  },
  {
    name: "want-more-and-less",
    seed: 2,
    wrong: "a dispatcher that wants one worker more and one less alternately",
    workload: "autoscaling",
    crashes: [],
    install: () => {
      const looks = new PerInstance<Autoscaler, { count: number }>(() => ({ count: 0 }));
      return changed(Autoscaler.prototype, ({ observe }) => ({
        observe(nowMs, signs) {
          const decision = observe.call(this, nowMs, signs);
          const extra = Math.floor(looks.of(this).count++ / LOOKS_ALIKE) % 2;
          return { ...decision, wanted: 1 + extra };
        },
      }));
    },
  },
];
