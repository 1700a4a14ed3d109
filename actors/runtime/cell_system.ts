/** What a cell needs from its system. */
import type { LeatError } from "../../core/error.ts";
import type { AskOptions, ChildSpec, WatchDown } from "./actor.ts";
import type { Answer, KeptBytes } from "./asking/answers.ts";
import type { Cell } from "./cell.ts";
import type { AskEnvelope, Envelope } from "./envelope.ts";
import type { Identity } from "./identity.ts";
import type { DropReason, InspectionEvent } from "./inspection.ts";
import type { Ref } from "./ref.ts";
import type { World } from "./world.ts";

export interface CellSystem {
  readonly world: World;
  readonly keptAnswerBytes: KeptBytes;
  newIncarnation(): string;
  // deno-lint-ignore no-explicit-any -- actors of one system speak different protocols
  startCell(parent: Cell, spec: ChildSpec<any>): Cell;
  ended(cell: Cell): void;
  schedule(cell: Cell): void;
  tell(source: Cell, target: Ref, method: string, body: unknown): void;
  ask(
    source: Cell,
    target: Ref,
    method: string,
    body: unknown,
    options: AskOptions,
  ): Promise<unknown>;
  answer(source: Cell, ask: AskEnvelope, answer: Answer): void;
  watch(source: Cell, target: Ref, down: WatchDown): () => void;
  whenLinked(source: Cell, node: string, up: () => void): () => void;
  tellWatchers(cell: Cell, why: () => LeatError): void;
  drop(envelope: Envelope, reason: DropReason): void;
  emit(event: InspectionEvent): void;
  gaveUp(cell: Cell, error: LeatError): void;
  refused(sender: Identity, error: LeatError): void;
}
