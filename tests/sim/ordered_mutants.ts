/**
 * Wrong actors of a DETERMINISTIC job, by what they would say: each changes messages on their way.
 */
import type { Envelope } from "../../actors/runtime/envelope.ts";
import type { ElementAnswer, Place } from "../../actors/worker/protocol.ts";
import type { Tamper } from "../../sim/network.ts";

type SplitAnswer = { readonly split?: { readonly sequence?: number; readonly index: number } };

/** One for each run: most of them remember what was said. */
export const MUTANTS: Readonly<Record<string, () => Tamper>> = {
  "a dispatcher that forgets splits that were lost": () => {
    const isAgain = reissues();
    return (envelope) => isAgain(envelope) ? undefined : envelope;
  },

  "a dispatcher that hands a lost split out with the luck of another": () => {
    const isAgain = reissues();
    return (envelope) => {
      if (!isAgain(envelope) || envelope.kind !== "reply") return envelope;
      const answer = envelope.body as Required<SplitAnswer>;
      const index = answer.split.index + 1;
      return { ...envelope, body: { ...answer, split: { ...answer.split, index } } };
    };
  },

  "a reader whose mark is ahead of what it has": () => (envelope) => {
    if (envelope.kind !== "ask" || envelope.method !== "clientHeartbeat") return envelope;
    const body = envelope.body as { readonly mark: number };
    return { ...envelope, body: { ...body, mark: body.mark + 4 } };
  },

  "a reader that takes duplicates": () => {
    const counts = new Map<string, Map<string, number>>();
    return placed((place, task, reader) => {
      const key = `${reader} ${place.sequence}`;
      const tasks = counts.get(key) ?? new Map<string, number>();
      counts.set(key, tasks);
      // What a second task gives of the split is taken as what follows after the first one's.
      if (!tasks.has(task)) tasks.set(task, Math.max(0, ...tasks.values()));
      const known = tasks.get(task)!;
      if (tasks.size > 1) return { ...place, index: place.index + known };
      tasks.set(task, Math.max(known, place.index + 1));
      return place;
    });
  },

  "a reader that joins what comes in the order of arrival": () => {
    const orders = new Map<string, number[]>();
    return placed((place, _task, reader) => {
      const order = orders.get(reader) ?? [];
      orders.set(reader, order);
      if (!order.includes(place.sequence)) order.push(place.sequence);
      return { ...place, sequence: order.indexOf(place.sequence) };
    });
  },

  "a task that takes the end of one split for that of the next": () =>
    placed((place, _task, _reader, kind) =>
      kind === "split_end" && place.sequence % 5 === 4 ? { ...place, index: 0 } : place
    ),
};

/** Whether a message hands a split to another task than it was handed to before. */
function reissues(): (envelope: Envelope) => boolean {
  const owners = new Map<number, string>();
  return (envelope) => {
    if (envelope.kind !== "reply") return false;
    const sequence = (envelope.body as SplitAnswer | null)?.split?.sequence;
    if (sequence === undefined) return false;
    const task = `${envelope.target.node} ${envelope.target.path}`;
    const owner = owners.get(sequence) ?? task;
    owners.set(sequence, owner);
    return owner !== task;
  };
}

/** Changes the places of what readers are given. */
function placed(
  change: (place: Place, task: string, reader: string, kind: string) => Place,
): Tamper {
  return (envelope) => {
    if (envelope.kind !== "reply") return envelope;
    const { place, kind } = (envelope.body ?? {}) as ElementAnswer & { readonly place?: Place };
    if (place === undefined) return envelope;
    const { source, target } = envelope;
    const moved = change(place, source.incarnation, target.path, kind);
    return { ...envelope, body: { ...envelope.body as ElementAnswer, place: moved } };
  };
}
