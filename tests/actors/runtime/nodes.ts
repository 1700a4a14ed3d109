/** Nodes for tests of the runtime: joined inline, inspected, stopped at the end. */
import { LeatError, type LeatErrorCode } from "../../../core/error.ts";
import type { ActorFactory, ChildSpec } from "../../../actors/runtime/actor.ts";
import type { InspectionEvent } from "../../../actors/runtime/inspection.ts";
import type { Link } from "../../../actors/runtime/link.ts";
import type { FencedRef } from "../../../actors/runtime/ref.ts";
import { ActorSystem, type SystemOptions } from "../../../actors/runtime/system.ts";
import { inlinePair } from "../../../transport/inline.ts";
import { DenoWorld } from "../../../platform/deno_world.ts";
import { assertEquals, assertInstanceOf, fail } from "../../assert.ts";
import { runInVirtualTime, type VirtualTime } from "../../lib/virtual_time.ts";

/** Longer, in ms, than anything that messages and macrotasks of virtual time need. */
const MOMENT_MS = 0.01;

/** The virtual time of the running test, if any, and its number of nodes. */
let current: { readonly time: VirtualTime; nodes: number } | undefined;

/** Registers a test whose nodes live in virtual time. It may wait for nothing else. */
export function test(name: string, run: () => void | Promise<void>): void {
  Deno.test(name, async () => {
    try {
      await runInVirtualTime(async (time) => {
        current = { time, nodes: 0 };
        await run();
      });
    } finally {
      current = undefined;
    }
  });
}

/** A node, and its events. */
export class TestNode implements AsyncDisposable {
  readonly system: ActorSystem;
  readonly events: InspectionEvent[] = [];
  readonly #waiting = new Set<() => void>();

  constructor(node: string, options: Partial<SystemOptions> = {}) {
    const world = current?.time.world(`${node} ${++current.nodes}`) ??
      new DenoWorld({ logLevel: "off" });
    this.system = new ActorSystem({ node, world, ...options });
    this.system.inspect((event) => {
      this.events.push(event);
      for (const look of [...this.#waiting]) look();
    });
  }

  /** The events of that type so far. */
  of<T extends InspectionEvent["type"]>(type: T): Extract<InspectionEvent, { type: T }>[] {
    return this.events.filter((event) => event.type === type) as Extract<
      InspectionEvent,
      { type: T }
    >[];
  }

  /** The reasons of all drops so far. */
  get drops(): string[] {
    return this.of("drop").map(({ reason }) => reason);
  }

  /** Resolves once there were this many events of that type. */
  async happened(type: InspectionEvent["type"], count = 1): Promise<void> {
    while (this.of(type).length < count) {
      await new Promise<void>((resolve) => {
        const look = () => {
          this.#waiting.delete(look);
          resolve();
        };
        this.#waiting.add(look);
      });
    }
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.system.stop();
  }
}

/** The two ends of a new link between two nodes, each of which accepts its own. */
export function join(a: TestNode, b: TestNode): [toB: Link, toA: Link] {
  const links = inlinePair(a.system.world, a.system.id, b.system.world, b.system.id);
  a.system.attach(links[0]);
  b.system.attach(links[1]);
  return links;
}

/** Two nodes with a link between them. */
export class TestPair implements AsyncDisposable {
  readonly a: TestNode;
  readonly b: TestNode;
  readonly links: [Link, Link];

  constructor(options: { a?: Partial<SystemOptions>; b?: Partial<SystemOptions> } = {}) {
    this.a = new TestNode("a", options.a);
    this.b = new TestNode("b", options.b);
    this.links = this.join();
  }

  join(): [Link, Link] {
    return join(this.a, this.b);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.a.system.stop();
    await this.b.system.stop();
  }
}

/** The protocol of the actor that most tests use. */
export interface Probe {
  /** Notes the value. */
  note(value: unknown): void;
  /** Everything noted so far. */
  notes(request: null): unknown[];
  /** Answers with the request, and counts the calls. */
  echo(value: unknown): { value: unknown; calls: number };
  /** Answers when `release` is called. */
  wait(request: null): string;
  release(request: null): number;
  /** Throws a `LeatError`. */
  refuse(code: LeatErrorCode): never;
  /** Throws another error. */
  crash(message: string): never;
  /** Like the two above, from a promise. */
  crashLater(message: string): never;
}

/** Makes a {@linkcode Probe}. */
export const probe: ActorFactory<Probe> = () => {
  const notes: unknown[] = [];
  let calls = 0;
  let waiting: ((answer: string) => void)[] = [];
  return {
    handlers: {
      note(value) {
        notes.push(value);
      },
      notes: () => notes,
      echo: (value) => ({ value, calls: ++calls }),
      wait: () => new Promise<string>((resolve) => waiting.push(resolve)),
      release() {
        const released = waiting;
        waiting = [];
        for (const resolve of released) resolve("released");
        return released.length;
      },
      refuse(code): never {
        throw new LeatError(code, `refused with ${code}`, { details: { why: "asked to" } });
      },
      crash(message): never {
        throw new TypeError(message);
      },
      async crashLater(message) {
        await Promise.resolve();
        throw new TypeError(message);
      },
    },
  };
};

/** Spawns a {@linkcode Probe}. */
export function spawnProbe(
  node: TestNode,
  options: Partial<ChildSpec<Probe>> = {},
): FencedRef<Probe> {
  return node.system.spawn<Probe>({ name: "probe", create: probe, ...options });
}

/** The `LeatError` that the promise rejects with; its code is checked. */
export async function rejection(promise: Promise<unknown>, code: LeatErrorCode) {
  try {
    await promise;
  } catch (error) {
    assertInstanceOf(error, LeatError);
    assertEquals(error.code, code, error.message);
    return error;
  }
  return fail(`Expected a rejection with ${code}`);
}

/** Lets everything that was sent so far arrive. */
export async function settle(rounds = 4): Promise<void> {
  for (let i = 0; i < rounds; i++) {
    await (current?.time.sleep(MOMENT_MS) ?? new Promise<void>((resolve) => setImmediate(resolve)));
  }
}

/** Options of asks that are expected to be answered. */
export const SOON = { timeoutMs: 60_000 } as const;

/** Lets virtual time pass, in a {@linkcode test}. */
export function pass(ms: number): Promise<void> {
  return current!.time.sleep(ms);
}
