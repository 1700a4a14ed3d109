/** Wrong actors that handle a request twice or never, although it must be handled once. */
import type { Envelope } from "../../actors/runtime/envelope.ts";
import { Feed } from "../../actors/client/feed.ts";
import { Answers } from "../../actors/runtime/asking/answers.ts";
import { ReceiveMarks } from "../../actors/runtime/asking/numbering.ts";
import { ElementFetcher } from "../../actors/exactly_once/fetcher.ts";
import { Repeats } from "../../actors/exactly_once/repeats.ts";
import type { ElementAnswer, GetElementRequest } from "../../actors/worker/protocol.ts";
import { TaskPipeline } from "../../actors/worker/tasks/task_pipeline.ts";
import { TaskSplits } from "../../actors/worker/tasks/task_splits.ts";
import { RequestQueue } from "../../actors/worker/tasks/request_queue.ts";
import { SimRandom } from "../engine/random.ts";
import { asksChanged, changed, type Mutant, PerInstance, tampered } from "./mutant.ts";

/** The mutants of this module. */
export const ELEMENT_MUTANTS: readonly Mutant[] = [
  {
    name: "forget-answers",
    wrong: "a task that forgets its answers, and produces another element for a repeated request",
    workload: "dynamic",
    crashes: [],
    install: () =>
      changed(Repeats.prototype, {
        answer: (_request, produce) => produce(),
      }),
  },
  {
    name: "acknowledge-unseen",
    wrong: "a client that acknowledges elements that it has only requested",
    workload: "dynamic",
    crashes: [],
    install: () =>
      asksChanged<GetElementRequest>("getElement", (body) => ({
        ...body,
        acknowledged: body.sequence - 1,
      })),
  },
  {
    name: "take-as-it-comes",
    wrong: "a client that takes a task's answers in the order of arrival, not of its requests",
    workload: "dynamic",
    crashes: [],
    install: () => {
      const waiting = new PerInstance<ElementFetcher, PromiseWithResolvers<ElementAnswer>[]>(
        () => [],
      );
      return changed(ElementFetcher.prototype, ({ fetch }) => ({
        fetch(wanted) {
          const all = waiting.of(this);
          const own = Promise.withResolvers<ElementAnswer>();
          all.push(own);
          fetch.call(this, wanted).then(
            (answer) => all.shift()!.resolve(answer),
            (error) => all.shift()!.reject(error),
          );
          return own.promise;
        },
      }));
    },
  },
  {
    name: "newest-first",
    wrong: "a task that answers the newest of a client's requests first",
    workload: "off",
    crashes: [],
    install: () =>
      changed(RequestQueue.prototype, ({ push }) => ({
        push(waiting) {
          const older = this.leave(waiting.reader);
          for (const each of [waiting, ...older]) push.call(this, each);
        },
      })),
  },
  {
    name: "drop-a-split",
    wrong: "a task that drops its first split",
    workload: "dynamic",
    crashes: ["client"],
    install: () => {
      const begun = new WeakSet<TaskSplits>();
      return changed(TaskSplits.prototype, ({ next }) => ({
        async next(...request) {
          const split = await next.call(this, ...request);
          if (begun.has(this)) return split;
          begun.add(this);
          return await next.call(this, ...request);
        },
      }));
    },
  },
  {
    name: "end-at-error",
    wrong: "a task that ends at its first element that fails",
    workload: "failing",
    crashes: [],
    install: () =>
      changed(TaskPipeline.prototype, ({ step }) => ({
        async step(...request) {
          const outcome = await step.apply(this, request);
          return outcome.kind === "error" ? { kind: "end" } : outcome;
        },
      })),
  },
  {
    name: "swallow-errors",
    wrong: "a task that skips the elements that fail",
    workload: "failing",
    crashes: [],
    install: () =>
      changed(TaskPipeline.prototype, ({ step }) => ({
        async step(...request) {
          for (;;) {
            const outcome = await step.apply(this, request);
            if (outcome.kind !== "error") return outcome;
          }
        },
      })),
  },
  {
    name: "number-each-attempt",
    wrong: "a task that numbers every attempt of a split request as a new request",
    workload: "dynamic",
    crashes: ["dispatcher"],
    faults: { lossProbability: 0.2 },
    install: () => {
      const numbers = new Map<string, number>();
      return tampered((envelope) => {
        if (envelope.kind !== "ask" || envelope.method !== "getSplit") return envelope;
        const { incarnation } = envelope.source;
        const number = (numbers.get(incarnation) ?? 0) + 1;
        numbers.set(incarnation, number);
        return { ...envelope, body: { ...envelope.body as object, number } };
      });
    },
  },
  {
    name: "reuse-incarnation",
    wrong: "a node whose actors have the incarnations of its previous life",
    workload: "dynamic",
    install: () =>
      changed(SimRandom.prototype, ({ fork }) => ({
        fork(label) {
          return fork.call(this, /^life \d+$/.test(label) ? "life 1" : label);
        },
      })),
  },
  {
    name: "skip-fences",
    wrong: "actors that take messages meant for earlier actors at their path",
    workload: "dynamic",
    seed: 179,
    install: () =>
      tampered((envelope): Envelope => {
        if (envelope.kind !== "ask" && envelope.kind !== "tell") return envelope;
        const { incarnation: _, ...target } = envelope.target;
        return { ...envelope, target };
      }),
  },
  {
    name: "take-twice",
    wrong: "a runtime that delivers duplicated envelopes",
    workload: "dynamic",
    install: () =>
      changed(ReceiveMarks.prototype, ({ accept }) => ({
        accept(source, number) {
          return Math.max(0, accept.call(this, source, number));
        },
      })),
  },
  {
    name: "keep-answers",
    wrong: "an actor that keeps every answer, even those that its asker has received",
    workload: "rounds",
    install: () =>
      changed(Answers.prototype, ({ begin }) => ({
        begin(source, sender, { id, timeoutMs }, nowMs) {
          const ask = { id, timeoutMs, settledBelow: -Infinity };
          return begin.call(this, source, sender, ask, nowMs);
        },
      })),
  },
  {
    name: "read-without-end",
    wrong: "a client that buffers elements without limit",
    workload: "sharing",
    install: () => {
      const own = Object.getOwnPropertyDescriptor(Feed.prototype, "length")!;
      Object.defineProperty(Feed.prototype, "length", { ...own, get: () => 0 });
      return {
        [Symbol.dispose]() {
          Object.defineProperty(Feed.prototype, "length", own);
        },
      };
    },
  },
  {
    name: "repeat-twice",
    wrong: "a cache that gives an element twice after a repeated request",
    workload: "sharing",
    install: () => {
      type Given = { newest: number; repeated: boolean; last?: ReturnType<Repeats["answer"]> };
      const clients = new PerInstance<Repeats, Map<number, Given>>(() => new Map());
      return changed(Repeats.prototype, ({ answer }) => ({
        answer(request, produce, asker) {
          const given = clients.of(this).getOrInsert(request.clientId, {
            newest: 0,
            repeated: false,
          });
          if (request.sequence <= given.newest) {
            given.repeated = true;
            return answer.call(this, request, produce, asker);
          }
          given.newest = request.sequence;
          const { last, repeated } = given;
          given.repeated = false;
          if (repeated && last !== undefined) return answer.call(this, request, () => last, asker);
          return answer.call(this, request, () => given.last = produce(), asker);
        },
      }));
    },
  },
];
