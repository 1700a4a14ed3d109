/**
 * How records change which consumers have left their iterator: none of its passes and chains waits for
 * them. A consumer's next iterator, or one that is restored, is waited for as any other.
 */
import type { Iteration, StreamReaders } from "../../state/entities.ts";
import type { Tables } from "../../state/tables.ts";
import type { StreamPass } from "../mode_state.ts";
import { awaitedOf, stateOf } from "./consumers_state.ts";
import { leave } from "./ordered_state.ts";
import { listed } from "./places.ts";
import { bytesOfReaders, readersKey } from "./stream_memory.ts";

/** What is remembered of a consumer that joins a pass. It has come back to iterators from there on. */
export function joining(
  known: StreamReaders | undefined,
  pass: StreamPass | undefined,
): Pick<StreamReaders, "begun" | "left"> {
  if (pass === undefined) return {};
  const { begun, iterator } = pass;
  const left = known?.begun === begun ? known.left : undefined;
  return { begun, ...(left !== undefined && left < iterator ? { left } : {}) };
}

/** A consumer has died, or has left its iterator. */
export function noteLeft(
  tables: Tables,
  { ordered }: Iteration,
  consumerIndex: number | null,
): void {
  const pass = ordered?.consumers?.pass;
  if (pass === undefined || consumerIndex === null) return;
  const key = readersKey(pass.stream, consumerIndex);
  const known = tables.readers.get(key);
  // It may be an old client of a consumer that was started anew, or that reads another chain.
  if (known?.begun !== pass.begun || readsIterator(tables, known.newest, pass)) return;
  const now = { ...known, left: Math.max(known.left ?? 0, pass.iterator) };
  tables.readers.set(key, now, bytesOfReaders(key, now));
  for (const other of tables.iterations.values()) leaveLeft(tables, other, [consumerIndex]);
}

/** An iteration starts. Consumers that have left its iterator will not join it. */
export function beginWithoutLeft(tables: Tables, iteration: Iteration): void {
  const consumers = iteration.ordered?.consumers;
  if (consumers) leaveLeft(tables, iteration, listed(awaitedOf(consumers)));
}

function leaveLeft(tables: Tables, { ordered }: Iteration, indices: readonly number[]): void {
  const { consumers } = ordered ?? {};
  const pass = consumers?.pass;
  if (!consumers || pass === undefined) return;
  const left = indices.filter((index) =>
    stateOf(consumers, index) === "awaited" && hasLeft(tables, pass, index)
  );
  if (left.length > 0) leave(ordered!, left);
}

function hasLeft({ readers }: Tables, { stream, begun, iterator }: StreamPass, index: number) {
  const known = readers.get(readersKey(stream, index));
  return known?.begun === begun && known.left !== undefined && iterator <= known.left;
}

/** Whether a client reads some pass or chain of the iterator. */
function readsIterator(tables: Tables, clientId: number, { begun, iterator }: StreamPass): boolean {
  const client = tables.clients.get(clientId);
  const pass = tables.iterations.get(client?.iterationId ?? -1)?.ordered?.consumers?.pass;
  return pass?.begun === begun && pass.iterator === iterator;
}
