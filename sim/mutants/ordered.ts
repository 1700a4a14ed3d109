/** Wrong actors and runners of a DETERMINISTIC job. */
import type { DispatcherProtocol } from "../../actors/dispatcher/protocol.ts";
import type { OrderedReport } from "../../actors/dispatcher/protocol_heartbeats.ts";
import type { Envelope } from "../../actors/runtime/envelope.ts";
import type { RequestOf } from "../../actors/runtime/protocol.ts";
import type { ElementAnswer, StreamPosition } from "../../actors/worker/protocol.ts";
import { PipelineRunners } from "../../actors/worker/runner/pipeline_runner.ts";
import { LeatError } from "../../core/error.ts";
import { asksChanged, changed, type Mutant, tampered } from "./mutant.ts";

type SplitAnswer = { readonly split?: { readonly sequence?: number; readonly index: number } };
type Heartbeat = RequestOf<DispatcherProtocol, "clientHeartbeat">;

/** Number of splits that a reader reports without having received them. */
const SPLITS_AHEAD = 4;

/** The mutants of this module. */
export const ORDERED_MUTANTS: readonly Mutant[] = [
  {
    name: "forget-lost-splits",
    wrong: "a dispatcher that forgets lost splits",
    workload: "ordered",
    install: () => {
      const isAgain = reissues();
      return tampered((envelope) => isAgain(envelope) ? undefined : envelope);
    },
  },
  {
    name: "forget-readers",
    wrong: "a dispatcher that does not know the readers of DETERMINISTIC jobs after a restart",
    workload: "ordered",
    crashes: ["dispatcher", "dispatcher"],
    install: () => {
      const isAfterRestart = restarts();
      const asked = new Set<string>();
      return tampered((envelope) => {
        const { kind, source, target } = envelope;
        if (kind === "ask" && envelope.method === "clientHeartbeat") {
          asked.add(`${source.incarnation} ${envelope.id}`);
        }
        if (kind !== "reply" || !asked.has(`${target.incarnation} ${envelope.id}`)) return envelope;
        if (!isAfterRestart(envelope)) return envelope;
        const { body: _, ...rest } = envelope;
        const error = new LeatError("not_found", "There is no such client").toWire();
        return { ...rest, kind: "failure", error };
      });
    },
  },
  {
    name: "lost-split-with-other-seed",
    wrong: "a dispatcher that reassigns a lost split with the seed of another",
    workload: "ordered",
    install: () => {
      const isAgain = reissues();
      return tampered((envelope) => {
        if (!isAgain(envelope) || envelope.kind !== "reply") return envelope;
        const answer = envelope.body as Required<SplitAnswer>;
        const index = answer.split.index + 1;
        return { ...envelope, body: { ...answer, split: { ...answer.split, index } } };
      });
    },
  },
  {
    name: "mark-ahead",
    seed: 3,
    wrong: "a reader that reports a mark beyond what it has",
    workload: "ordered",
    install: () =>
      asksChanged<Heartbeat & { readonly report: OrderedReport }>(
        "clientHeartbeat",
        ({ report, ...body }) => ({
          ...body,
          report: { ...report, mark: report.mark + SPLITS_AHEAD },
        }),
      ),
  },
  {
    name: "continue-after-death",
    wrong:
      "a runner that continues a dead one's split, though its task drops what it expects again",
    workload: "poison",
    crashes: [],
    install: () => {
      const steps = new Map<string, number>();
      return changed(PipelineRunners.prototype, ({ start }) => ({
        start(settings, splits) {
          const runner = start.call(this, settings, splits);
          const begun = new Set<string>();
          const next: typeof runner.next = (ownStep, wish) => {
            if (ownStep === undefined || !("grant" in ownStep)) return runner.next(ownStep, wish);
            const split = `${settings.forTask?.taskId} ${ownStep.grant}`;
            const before = steps.get(split) ?? 0;
            steps.set(split, before + 1);
            if (!begun.has(split)) {
              for (let step = 0; step < before; step++) runner.next(ownStep);
            }
            begun.add(split);
            return runner.next(ownStep, wish);
          };
          return {
            next,
            get bytesRead() {
              return runner.bytesRead;
            },
            dispose: () => runner.dispose(),
          };
        },
      }));
    },
  },
  {
    name: "take-duplicates",
    seed: 31,
    wrong: "a reader that appends a second task's elements of a split to the first task's",
    workload: "ordered",
    install: () => {
      const counts = new Map<string, Map<string, number>>();
      return placed((place, task, reader) => {
        const key = `${reader} ${place.sequence}`;
        const tasks = counts.getOrInsertComputed(key, () => new Map());
        const count = tasks.getOrInsertComputed(task, () => Math.max(0, ...tasks.values()));
        if (tasks.size > 1) return { ...place, index: place.index + count };
        tasks.set(task, Math.max(count, place.index + 1));
        return place;
      });
    },
  },
  {
    name: "order-of-arrival",
    wrong: "a reader that joins elements in the order of arrival",
    workload: "ordered",
    install: () => {
      const orders = new Map<string, number[]>();
      return placed((place, _task, reader) => {
        const order = orders.getOrInsert(reader, []);
        if (!order.includes(place.sequence)) order.push(place.sequence);
        return { ...place, sequence: order.indexOf(place.sequence) };
      });
    },
  },
  {
    name: "end-of-another-split",
    isSlow: true,
    wrong: "a task that takes the end of one split for the end of the next",
    workload: "ordered",
    install: () =>
      placed((place, _task, _reader, kind) =>
        kind === "split_end" && place.sequence % 5 === 4 ? { ...place, index: 0 } : place
      ),
  },
];

/** Whether a message assigns a split to another task than before. */
function reissues(): (envelope: Envelope) => boolean {
  const owners = new Map<number, string>();
  return (envelope) => {
    if (envelope.kind !== "reply") return false;
    const sequence = (envelope.body as SplitAnswer | null)?.split?.sequence;
    if (sequence === undefined) return false;
    const task = `${envelope.target.node} ${envelope.target.path}`;
    return owners.getOrInsert(sequence, task) !== task;
  };
}

/** Whether a message is the first to its receiver from another life of the sender. */
function restarts(): (envelope: Envelope) => boolean {
  const lives = new Map<string | undefined, string>();
  return ({ source, target }) => {
    const before = lives.get(target.incarnation);
    lives.set(target.incarnation, source.incarnation);
    return before !== undefined && before !== source.incarnation;
  };
}

/** Changes the positions of the elements that readers receive. */
function placed(
  change: (place: StreamPosition, task: string, reader: string, kind: string) => StreamPosition,
): Disposable {
  return tampered((envelope) => {
    if (envelope.kind !== "reply") return envelope;
    const { place, kind } = (envelope.body ?? {}) as ElementAnswer & {
      readonly place?: StreamPosition;
    };
    if (place === undefined) return envelope;
    const { source, target } = envelope;
    const moved = change(place, source.incarnation, target.path, kind);
    return { ...envelope, body: { ...envelope.body as ElementAnswer, place: moved } };
  });
}
