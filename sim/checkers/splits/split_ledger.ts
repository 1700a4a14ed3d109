/**
 * Checks the dispatcher's answers across its lives. No split is assigned to two requests. A repeated
 * request gets the same split. Every element that is missing at the end was assigned to a lost task.
 */
import type { DispatcherProtocol } from "../../../actors/dispatcher/protocol.ts";
import type { InspectionEvent } from "../../../actors/runtime/inspection.ts";
import type { WorkNews } from "../../../actors/dispatcher/protocol_heartbeats.ts";
import type { AnswerOf, RequestOf } from "../../../actors/runtime/protocol.ts";
import type { Split } from "../../../data/sharding/splits.ts";
import type { Findings } from "../checker.ts";

type SplitRequest = RequestOf<DispatcherProtocol, "getSplit">;
type SplitAnswer = AnswerOf<DispatcherProtocol, "getSplit">;

/** Watches the answers by inspecting the dispatcher's node. */
export class SplitLedger {
  readonly #findings: Findings;
  /** Received requests, by the asker and the ask's id, which are all that an answer carries. */
  readonly #requests = new Map<string, Map<number, SplitRequest>>();
  readonly #requestOfSplit = new Map<string, string>();
  readonly #splitOfRequest = new Map<string, number | null>();
  /** The task of each request that reached the dispatcher. */
  readonly #taskOfRequest = new Map<string, number>();
  /** The tasks to which each element was assigned. */
  readonly #tasksOfElement = new Map<number, Set<number>>();
  /** The repetition of the job that each task reads. */
  readonly #epochOfTask = new Map<number, number>();
  readonly #elements: number;

  /**
   * @param elements Number of elements of an epoch. The elements of several epochs are numbered
   * consecutively.
   */
  constructor(findings: Findings, elements = 0) {
    this.#findings = findings;
    this.#elements = elements;
  }

  /** An observer for `ActorSystem.inspect` of each life of the dispatcher's node. */
  readonly observe = (event: InspectionEvent): void => {
    if (event.type === "deliver" && event.envelope.kind === "ask") {
      const { source, id, method, body } = event.envelope;
      if (method !== "getSplit") return;
      const requests = this.#requests.get(source.incarnation);
      const request = body as SplitRequest;
      for (let after = 0; after < (request.count ?? 1); after++) {
        const number = request.number + after;
        this.#taskOfRequest.set(describe({ ...request, number }), request.taskId);
      }
      if (requests === undefined) this.#requests.set(source.incarnation, new Map([[id, request]]));
      else requests.set(id, request);
    } else if (event.type === "send" && event.envelope.kind === "reply") {
      const { target, id, body } = event.envelope;
      const { newTasks = [] } = body as Partial<WorkNews> | null ?? {};
      for (const { taskId, repetition } of newTasks) this.#epochOfTask.set(taskId, repetition);
      const request = this.#requests.get(target.incarnation!)?.get(id);
      if (request !== undefined) this.#answered(request, body as SplitAnswer);
    }
  };

  /**
   * Checks at the end the elements that are missing. An element may be missing if it was assigned to a
   * task that was lost with its worker. For each request of such a task without a known answer, one more
   * element may be missing. There is one source, which is not repeated within an epoch.
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
      `elements ${unknown.join(", ")} are missing, which no task was assigned; lost tasks had ` +
        `${unansweredCount} requests without an answer`,
    );
  }

  #answered(request: SplitRequest, { split, more = [] }: SplitAnswer): void {
    this.#assigned(request, split);
    const { number, count = 1 } = request;
    for (let after = 1; after < count; after++) {
      this.#assigned({ ...request, number: number + after }, more[after - 1] ?? null);
    }
  }

  #assigned(splitRequest: SplitRequest, split: SplitAnswer["split"]): void {
    const { taskId, source, repetition } = splitRequest;
    const request = describe(splitRequest);
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
      this.#findings.add(`split ${key} was assigned to ${other}, then to ${request}`);
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
