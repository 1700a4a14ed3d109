/**
 * Checks what the dispatcher says, life after life: no split goes to two requests, and a repeated
 * request gets the same split.
 *
 * @module
 */
import type { DispatcherProtocol } from "../../actors/dispatcher/protocol.ts";
import type { InspectionEvent } from "../../actors/runtime/inspection.ts";
import type { AnswerOf, RequestOf } from "../../actors/runtime/protocol.ts";
import type { Findings } from "./checker.ts";

type SplitRequest = RequestOf<DispatcherProtocol, "getSplit">;
type SplitAnswer = AnswerOf<DispatcherProtocol, "getSplit">;

/** Reads the answers off the dispatcher's node by inspection. */
export class SplitLedger {
  readonly #findings: Findings;
  /** Requests that were handled, by asker and by id: their answers carry only these. */
  readonly #asked = new Map<string, Map<number, SplitRequest>>();
  readonly #requestOfSplit = new Map<string, string>();
  readonly #splitOfRequest = new Map<string, number | null>();

  constructor(findings: Findings) {
    this.#findings = findings;
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
      if (requests === undefined) this.#asked.set(source.incarnation, new Map([[id, request]]));
      else requests.set(id, request);
    } else if (event.type === "send" && event.envelope.kind === "reply") {
      const { target, id, body } = event.envelope;
      const request = this.#asked.get(target.incarnation!)?.get(id);
      if (request !== undefined) this.#answered(request, body as SplitAnswer);
    }
  };

  #answered({ taskId, number, source, repetition }: SplitRequest, { split }: SplitAnswer): void {
    const request = `request ${number} of task ${taskId} for source ${source}`;
    const before = this.#splitOfRequest.get(request);
    const index = split?.index ?? null;
    if (before === undefined) this.#splitOfRequest.set(request, index);
    else if (before !== index) {
      this.#findings.add(`${request} was answered with split ${before}, then with ${index}`);
    }
    if (index === null) return;
    const key = `${repetition}/${source}/${index}`;
    const other = this.#requestOfSplit.get(key);
    if (other === undefined) this.#requestOfSplit.set(key, request);
    else if (other !== request) {
      this.#findings.add(`split ${key} was handed out to ${other}, then to ${request}`);
    }
  }
}
