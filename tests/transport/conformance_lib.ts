/** Nodes, probes and messages of the carriers' conformance suite. */

import type { ActorFactory } from "../../actors/runtime/actor.ts";
import type { Envelope } from "../../actors/runtime/envelope.ts";
import type { Link, NodeId } from "../../actors/runtime/link.ts";
import type { FencedRef } from "../../actors/runtime/ref.ts";
import { ActorSystem } from "../../actors/runtime/system.ts";
import type { World } from "../../actors/runtime/world.ts";
import type { LinkLimits } from "../../transport/limits.ts";
import { Payload } from "../../transport/payload.ts";
import { assertEquals } from "../assert.ts";

/** Two ends of a link, and a way to break it. */
export interface Joined {
  /** The end of the first node, which dialled. */
  readonly near: Link;
  readonly far: Link;
  /** Breaks it from below, without a goodbye: like a power cut or a killed thread. */
  cut(): void;
}

/** A carrier, for {@linkcode conformance}. */
export interface CarrierUnderTest {
  /** Its name in the table. */
  readonly name: string;
  /** The platforms of two nodes. */
  readonly worlds: readonly [World, World];
  /** Joins two nodes. May be called several times. */
  join(near: NodeId, far: NodeId, limits?: Partial<LinkLimits>): Promise<Joined>;
  /** Waits for a promise that settles by itself. A carrier with virtual time advances it here. */
  run<T>(promise: Promise<T>): Promise<T>;
  /** Delivers what is in transit. */
  settle(): Promise<void>;
  /** Whether a small message may overtake a large one of another pair. */
  readonly overtakes: boolean;
  /** Largest message to be tried, in bytes; default 100 MB. */
  readonly largeBytes?: number;
  /** Ends everything. */
  close(): Promise<void>;
}

export const MB = 1_000_000;

export const SOON = { timeoutMs: 120_000 };

export type Run = (carrier: CarrierUnderTest) => Promise<void>;

export function note(scenario: string, carrier: string, result: string): void {
  const row = results.get(scenario) ?? new Map<string, string>();
  results.set(scenario, row.set(carrier, result));
}

// ---------------------------------------------------------------------------------------------
// Two systems

export interface Probe {
  note(value: unknown): null;
  notes(request: null): unknown[];
  echo(value: unknown): unknown;
  count(request: null): number;
  wait(request: null): null;
}

export const probe: ActorFactory<Probe> = () => {
  const notes: unknown[] = [];
  let count = 0;
  return {
    handlers: {
      note(value) {
        notes.push(value);
        return null;
      },
      notes: () => notes,
      echo: (value) => value,
      count: () => ++count,
      wait: () => new Promise<null>(() => {}),
    },
  };
};

interface Systems {
  readonly near: ActorSystem;
  readonly far: ActorSystem;
  readonly probe: FencedRef<Probe>;
  readonly joined: Joined;
}

export async function withSystems(
  carrier: CarrierUnderTest,
  use: (systems: Systems) => Promise<void>,
): Promise<void> {
  const near = new ActorSystem({ node: "near", world: carrier.worlds[0] });
  const far = new ActorSystem({ node: "far", world: carrier.worlds[1] });
  const joined = await carrier.run(carrier.join(near.id, far.id));
  near.attach(joined.near);
  far.attach(joined.far);
  const ref = far.spawn<Probe>({ name: "probe", create: probe });
  try {
    await use({ near, far, probe: ref, joined });
  } finally {
    await carrier.run(near.stop());
    await carrier.run(far.stop());
  }
}

export async function dialBoth(carrier: CarrierUnderTest): Promise<void> {
  const near = new ActorSystem({ node: "near", world: carrier.worlds[0] });
  const far = new ActorSystem({ node: "far", world: carrier.worlds[1] });
  const [one, two] = await carrier.run(Promise.all([
    carrier.join(near.id, far.id),
    carrier.join(far.id, near.id),
  ]));
  near.attach(one.near);
  far.attach(two.near);
  near.attach(two.far);
  far.attach(one.far);
  const here = near.spawn<Probe>({ name: "probe", create: probe });
  const there = far.spawn<Probe>({ name: "probe", create: probe });
  const expected = Array.from({ length: 100 }, (_, i) => i);
  for (const i of expected) {
    near.tell(there, "note", i);
    far.tell(here, "note", i);
  }
  assertEquals(await carrier.run(near.ask(there, "notes", null, SOON)), expected);
  assertEquals(await carrier.run(far.ask(here, "notes", null, SOON)), expected);
  one.cut();
  await carrier.run(one.near.closed);
  await carrier.run(one.far.closed);
  const limits = { ...SOON, attemptMs: 50 };
  assertEquals(await carrier.run(near.ask(there, "count", null, limits)), 1);
  assertEquals(await carrier.run(far.ask(here, "count", null, limits)), 1);
  await carrier.run(near.stop());
  await carrier.run(far.stop());
}

// ---------------------------------------------------------------------------------------------
// Two bare links

export const NEAR: NodeId = { node: "near", incarnation: "00000000000000aa" };

export const FAR: NodeId = { node: "far", incarnation: "00000000000000bb" };

let lastNumber = 0;

/** An envelope from an actor of the first node to one of the second. */
export function tellOf(body: unknown, names: { source?: string; target?: string } = {}): Envelope {
  const { source = "/sender", target = "/receiver" } = names;
  return {
    kind: "tell",
    source: { node: "near", path: source, incarnation: `${NEAR.incarnation}-1` },
    target: { node: "far", path: target },
    number: ++lastNumber,
    method: "note",
    body,
  };
}

export function bodyOf(envelope: Envelope): unknown {
  return "body" in envelope ? envelope.body : undefined;
}

/** Collects the messages that a link receives. */
export class Inbox {
  readonly envelopes: Envelope[] = [];
  #waiting: (() => void)[] = [];

  constructor(link: Link) {
    link.start((envelope) => {
      this.envelopes.push(envelope);
      for (const look of this.#waiting.splice(0)) look();
    });
  }

  async has(count: number): Promise<void> {
    while (this.envelopes.length < count) {
      await new Promise<void>((resolve) => this.#waiting.push(resolve));
    }
  }
}

export async function keptBody(carrier: CarrierUnderTest): Promise<void> {
  const { near, far } = await carrier.run(carrier.join(NEAR, FAR));
  near.start(() => {});
  const inbox = new Inbox(far);
  const kept = new Payload(new Uint8Array([1, 2, 3]));
  const shared = new Payload(new Uint8Array([4, 5]), { shared: true });
  for (let i = 0; i < 2; i++) {
    near.send(tellOf(kept), true);
    near.send(tellOf({ shared }));
  }
  await carrier.run(inbox.has(4));
  const got = inbox.envelopes.map(bodyOf) as [Payload, { shared: Payload }];
  got[0].bytes.fill(0);
  got[1].shared.bytes.fill(0);
  assertEquals([[...kept.bytes], [...shared.bytes]], [[1, 2, 3], [4, 5]], "not written to");
  assertEquals([...(bodyOf(inbox.envelopes[2]!) as Payload).bytes], [1, 2, 3]);
  near.close();
  await carrier.run(far.closed);
}

export const results = new Map<string, Map<string, string>>();
