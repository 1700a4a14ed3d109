/**
 * Checks that no split is produced beyond the window: what reaches a reader lies within so many
 * splits of the mark that it last told the dispatcher.
 *
 * @module
 */
import type { DispatcherProtocol } from "../../actors/dispatcher/protocol.ts";
import type { InspectionEvent } from "../../actors/runtime/inspection.ts";
import type { RequestOf } from "../../actors/runtime/protocol.ts";
import type { ElementAnswer } from "../../actors/worker/protocol.ts";
import type { Findings } from "./checker.ts";

/** Reads what readers say and are given off their nodes by inspection. */
export class SplitWindowChecker {
  readonly #windowSplits: number;
  readonly #findings: Findings;
  /** Of each reader, by the path of its actor. */
  readonly #marks = new Map<string, number>();

  constructor(windowSplits: number, findings: Findings) {
    this.#windowSplits = windowSplits;
    this.#findings = findings;
  }

  /** Give this to `ActorSystem.inspect` of each life of a reader's node. */
  readonly observe = (event: InspectionEvent): void => {
    if (event.type === "send" && event.envelope.kind === "ask") {
      const { source, method, body } = event.envelope;
      if (method === "openIteration") this.#said(source.path, body as OpenRequest);
      if (method === "clientHeartbeat") this.#said(source.path, body as HeartbeatRequest);
    } else if (event.type === "deliver" && event.envelope.kind === "reply") {
      this.#given(event.envelope.target.path, event.envelope.body);
    }
  };

  #said(reader: string, { mark, startAt }: Partial<OpenRequest & HeartbeatRequest>): void {
    const known = this.#marks.get(reader) ?? 0;
    this.#marks.set(reader, Math.max(known, mark ?? 0, startAt ?? 0));
  }

  #given(reader: string, body: unknown): void {
    const place = (body as Partial<Extract<ElementAnswer, { place?: unknown }>> | null)?.place;
    const mark = this.#marks.get(reader);
    if (place === undefined || mark === undefined) return;
    if (place.sequence < mark + this.#windowSplits) return;
    this.#findings.add(
      `split ${place.sequence} was produced for ${reader}, whose mark is ${mark} and window ` +
        `${this.#windowSplits}`,
    );
  }
}

type OpenRequest = RequestOf<DispatcherProtocol, "openIteration">;
type HeartbeatRequest = RequestOf<DispatcherProtocol, "clientHeartbeat">;
