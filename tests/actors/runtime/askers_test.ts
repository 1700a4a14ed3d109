/**
 * The answers that the runtime keeps for repeated asks: none for askers that have acknowledged them
 * or ended, and all for live ones.
 */
import type { ActorFactory } from "../../../actors/runtime/actor.ts";
import { CHECK_FROM, IDLE_MS } from "../../../actors/runtime/asking/answers.ts";
import type { AskEnvelope, Envelope } from "../../../actors/runtime/envelope.ts";
import type { FencedRef, Ref } from "../../../actors/runtime/ref.ts";
import { inlinePair } from "../../../transport/inline.ts";
import { DenoWorld } from "../../../platform/deno_world.ts";
import { assert, assertEquals } from "../../assert.ts";
import { type Probe, settle, SOON, spawnProbe, TestNode, TestPair } from "./nodes.ts";

const PATIENTLY = { ...SOON, attemptMs: 5_000 } as const;

/** A world with a manual clock. */
class LaterWorld extends DenoWorld {
  laterMs = 0;
  override nowMs(): number {
    return super.nowMs() + this.laterMs;
  }
}

interface Asker {
  /** Asks the probe once. */
  go(request: null): Promise<number>;
}

const askerOf = (probe: Ref<Probe>): ActorFactory<Asker> => (context) => ({
  handlers: {
    go: async () => (await context.ask(probe, "echo", null, PATIENTLY)).calls,
  },
});

/** Node "a" with askers, node "b" with a probe; messages to "b" can be replayed. */
class AskersBench implements AsyncDisposable {
  readonly world = new LaterWorld({ logLevel: "off" });
  readonly b = new TestNode("b", { world: this.world });
  readonly probe = spawnProbe(this.b);
  readonly heard: AskEnvelope[] = [];
  #hear: (envelope: Envelope) => void = () => {};
  a = this.#join();

  #join(): TestNode {
    const a = new TestNode("a");
    const [toB, toA] = inlinePair(a.system.world, a.system.id, this.world, this.b.system.id);
    a.system.attach(toB);
    const start = toA.start.bind(toA);
    toA.start = (receive) => {
      this.#hear = receive;
      start((envelope) => {
        if (envelope.kind === "ask") this.heard.push(envelope);
        receive(envelope);
      });
    };
    this.b.system.attach(toA);
    return a;
  }

  /** Node "a" ends, and starts again. */
  async restart(): Promise<void> {
    await this.a.system.stop();
    this.a = this.#join();
  }

  /** Actors of these names ask once each. */
  async ask(...names: string[]): Promise<void> {
    for (const name of names) {
      const ref: FencedRef<Asker> = this.a.system.spawn({ name, create: askerOf(this.probe) });
      await this.a.system.ask(ref, "go", null, SOON);
    }
  }

  /** A late repetition of that actor's ask arrives. */
  async again(name: string): Promise<void> {
    const first = this.heard.find(({ source }) => source.path === `/${name}`)!;
    this.#hear({ ...first, number: first.number + 1 });
    await settle();
  }

  /** Time passes, and another actor asks. */
  async later(): Promise<void> {
    this.world.laterMs += IDLE_MS;
    await this.a.system.ask(this.probe, "notes", null, PATIENTLY);
    await settle();
  }

  get kept(): number {
    return this.b.system.held.keptAnswers;
  }

  async calls(): Promise<number> {
    return (await this.b.system.ask(this.probe, "echo", null, SOON)).calls;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.a.system.stop();
    await this.b.system.stop();
  }
}

const namesOf = (count: number) => Array.from({ length: count }, (_, i) => `asker-${i}`);

Deno.test("answers are dropped while an earlier ask still waits", async () => {
  await using pair = new TestPair();
  const ref = spawnProbe(pair.b);
  const waiting = pair.a.system.ask(ref, "wait", null, PATIENTLY);
  for (let i = 1; i <= 20; i++) {
    assertEquals((await pair.a.system.ask(ref, "echo", i, PATIENTLY)).calls, i);
  }
  assertEquals(pair.b.system.held.keptAnswers, 1);
  await pair.a.system.ask(ref, "release", null, SOON);
  assertEquals(await waiting, "released");
});

Deno.test("answers to ended actors are forgotten, and their late attempts dropped", async () => {
  await using bench = new AskersBench();
  const names = namesOf(CHECK_FROM);
  await bench.ask("living", ...names);
  for (const name of names) await bench.a.system.stopActor(name);
  await bench.later();
  assertEquals(bench.kept, 2, "of who lives, and of who has just asked");
  await bench.again("asker-0");
  assertEquals(bench.b.drops, ["not_newer"]);
  await bench.again("living");
  const again = bench.b.of("send").filter(({ envelope }) =>
    envelope.kind === "reply" && envelope.target.path === "/living"
  );
  assertEquals(again.length, 2, "who lives is answered again");
  assertEquals(await bench.calls(), names.length + 2, "and nothing was handled twice");
});

Deno.test("answers to a restarted node are forgotten, and its late attempts dropped", async () => {
  await using bench = new AskersBench();
  await bench.ask(...namesOf(CHECK_FROM));
  await bench.restart();
  await bench.later();
  assertEquals(bench.kept, 1);
  await bench.again("asker-0");
  assertEquals(bench.b.drops, ["not_newer"]);
  assertEquals(await bench.calls(), CHECK_FROM + 1);
});

Deno.test("answers to an unreachable node are kept, because it may ask again", async () => {
  await using bench = new AskersBench();
  await bench.ask(...namesOf(CHECK_FROM));
  await bench.a.system.stop();
  bench.world.laterMs += IDLE_MS;
  await bench.b.system.ask(bench.probe, "notes", null, PATIENTLY);
  await settle();
  assert(bench.kept >= CHECK_FROM);
  await bench.again("asker-0");
  assertEquals(await bench.calls(), CHECK_FROM + 1);
});

Deno.test("answers to actors of the same node are forgotten when they have ended", async () => {
  const world = new LaterWorld({ logLevel: "off" });
  await using node = new TestNode("a", { world });
  const probe = spawnProbe(node);
  for (const name of namesOf(CHECK_FROM)) {
    const ref: FencedRef<Asker> = node.system.spawn({ name, create: askerOf(probe) });
    await node.system.ask(ref, "go", null, SOON);
    await node.system.stopActor(name);
  }
  world.laterMs += IDLE_MS;
  await node.system.ask(probe, "notes", null, PATIENTLY);
  assertEquals(node.system.held.keptAnswers, 1);
});
