/**
 * Checks that no split is produced beyond the window. A reader receives only splits within the window
 * after the mark that it last reported to the dispatcher.
 */
import type { DispatcherProtocol } from "../../../actors/dispatcher/protocol.ts";
import type { InspectionEvent } from "../../../actors/runtime/inspection.ts";
import type { RequestOf } from "../../../actors/runtime/protocol.ts";
import type { ElementAnswer } from "../../../actors/worker/protocol.ts";
import type { Findings } from "../checker.ts";

/** Watches readers' heartbeats and deliveries by inspecting their nodes. */
export class SplitWindowChecker {
  readonly #windowSplits: number;
  readonly #findings: Findings;
  /** The mark of each reader, by the path of its actor. */
  readonly #marks = new Map<string, number>();

  constructor(windowSplits: number, findings: Findings) {
    this.#windowSplits = windowSplits;
    this.#findings = findings;
  }

  /** An observer for `ActorSystem.inspect` of each life of a reader's node. */
  readonly observe = (event: InspectionEvent): void => {
    if (event.type === "send" && event.envelope.kind === "ask") {
      const { source, method, body } = event.envelope;
      if (method === "openIteration") this.#reported(source.path, body as OpenRequest);
      if (method === "clientHeartbeat") this.#reported(source.path, body as HeartbeatRequest);
    } else if (event.type === "deliver" && event.envelope.kind === "reply") {
      this.#received(event.envelope.target.path, event.envelope.body);
    }
  };

  #reported(reader: string, { report, startAt }: Partial<OpenRequest & HeartbeatRequest>): void {
    const mark = report?.kind === "ordered" ? report.mark : 0;
    const previous = this.#marks.get(reader) ?? 0;
    this.#marks.set(reader, Math.max(previous, mark, startAt ?? 0));
  }

  #received(reader: string, body: unknown): void {
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
