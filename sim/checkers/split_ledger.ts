/**
 * Checks what the dispatcher says, life after life: no split goes to two requests, a repeated request
 * gets the same split, and what is missing at the end was a lost task's to give.
 *
 * @module
 */
import type { DispatcherProtocol } from "../../actors/dispatcher/protocol.ts";
import type { InspectionEvent } from "../../actors/runtime/inspection.ts";
import type { AnswerOf, RequestOf } from "../../actors/runtime/protocol.ts";
import type { Split } from "../../data/splits.ts";
import type { Findings } from "./checker.ts";

type SplitRequest = RequestOf<DispatcherProtocol, "getSplit">;
type SplitAnswer = AnswerOf<DispatcherProtocol, "getSplit">;
type HeartbeatAnswer = AnswerOf<DispatcherProtocol, "workerHeartbeat">;

/** Reads the answers off the dispatcher's node by inspection. */
export class SplitLedger {
  readonly #findings: Findings;
  /** Requests that were handled, by asker and by id: their answers carry only these. */
  readonly #asked = new Map<string, Map<number, SplitRequest>>();
  readonly #requestOfSplit = new Map<string, string>();
  readonly #splitOfRequest = new Map<string, number | null>();
  /** By each request that has reached the dispatcher: the task that made it. */
  readonly #taskOfRequest = new Map<string, number>();
  /** By each element that was handed out: the tasks that were to give it. */
  readonly #tasksOfElement = new Map<number, Set<number>>();
  /** Which repetition of its job a task reads. */
  readonly #epochOfTask = new Map<number, number>();
  readonly #elements: number;

  /** @param elements How many an epoch of the job has: where it has several, one's follow the others'. */
  constructor(findings: Findings, elements = 0) {
    this.#findings = findings;
    this.#elements = elements;
  }

  /** How many splits were handed out. */
  get handedOut(): number {
    return this.#requestOfSplit.size;
  }

  /** Give this to `ActorSystem.inspect` of each life of the dispatcher's node. */
  readonly observe = (event: InspectionEvent): void => {
    if (event.type === "deliver" && event.envelope.kind === "ask") {
      const { source, id, method, body } = event.envelope;
      if (method !== "getSplit") return;
      const requests = this.#asked.get(source.incarnation);
      const request = body as SplitRequest;
      this.#taskOfRequest.set(describe(request), request.taskId);
      if (requests === undefined) this.#asked.set(source.incarnation, new Map([[id, request]]));
      else requests.set(id, request);
    } else if (event.type === "send" && event.envelope.kind === "reply") {
      const { target, id, body } = event.envelope;
      const { newTasks = [] } = body as Partial<HeartbeatAnswer> | null ?? {};
      for (const { taskId, repetition } of newTasks) this.#epochOfTask.set(taskId, repetition);
      const request = this.#asked.get(target.incarnation!)?.get(id);
      if (request !== undefined) this.#answered(request, body as SplitAnswer);
    }
  };

  /**
   * Everything is over: elements may be missing that were handed out to a task which was lost with its
   * worker. Of a request of such a task it may be unknown what it was granted: so many may be missing
   * beyond those. There is one source, which is not repeated within an epoch.
   */
  expectLost(missing: readonly number[], isLost: (taskId: number) => boolean): void {
    const unknown: number[] = [];
    for (const element of missing) {
      const tasks = [...this.#tasksOfElement.get(element) ?? []];
      if (tasks.length === 0) unknown.push(element);
      else if (!tasks.some(isLost)) {
        this.#findings.add(
          `element ${element} is missing, of task ${tasks.join(", ")}, which was not lost`,
        );
      }
    }
    const unanswered = this.#taskOfRequest.entries().filter(([request, taskId]) =>
      isLost(taskId) && !this.#splitOfRequest.has(request)
    );
    const unansweredCount = [...unanswered].length;
    if (unknown.length <= unansweredCount) return;
    this.#findings.add(
      `elements ${unknown.join(", ")} are missing, which nobody was given; lost tasks had ` +
        `${unansweredCount} requests without an answer`,
    );
  }

  #answered(asked: SplitRequest, { split }: SplitAnswer): void {
    const { taskId, source, repetition } = asked;
    const request = describe(asked);
    const before = this.#splitOfRequest.get(request);
    const index = split?.index ?? null;
    if (before === undefined) this.#splitOfRequest.set(request, index);
    else if (before !== index) {
      this.#findings.add(`${request} was answered with split ${before}, then with ${index}`);
    }
    if (index === null) return;
    this.#noteElements(taskId, split!);
    const key = `${this.#epochOf(taskId)}/${repetition}/${source}/${index}`;
    const other = this.#requestOfSplit.get(key);
    if (other === undefined) this.#requestOfSplit.set(key, request);
    else if (other !== request) {
      this.#findings.add(`split ${key} was handed out to ${other}, then to ${request}`);
    }
  }

  #epochOf(taskId: number): number {
    return this.#epochOfTask.get(taskId) ?? 0;
  }

  #noteElements(taskId: number, { start, stop }: Split): void {
    const first = this.#epochOf(taskId) * this.#elements;
    for (let element = first + start; element < first + stop; element++) {
      const tasks = this.#tasksOfElement.get(element);
      if (tasks === undefined) this.#tasksOfElement.set(element, new Set([taskId]));
      else tasks.add(taskId);
    }
  }
}

function describe({ taskId, number, source }: SplitRequest): string {
  return `request ${number} of task ${taskId} for source ${source}`;
}
