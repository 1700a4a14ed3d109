/** Elements over a link on which they take longer than their requests may stay open. */
import { ElementFetcher } from "../../actors/exactly_once/fetcher.ts";
import { Repeats } from "../../actors/exactly_once/repeats.ts";
import type { FencedRef, Ref } from "../../actors/runtime/ref.ts";
import type { ElementReaderProtocol, ElementSourceProtocol } from "../../actors/worker/protocol.ts";
import { LeatError } from "../../core/error.ts";
import { SimCluster } from "../../sim/engine/cluster.ts";
import { NO_FAULTS } from "../../sim/faults/options.ts";
import { Payload } from "../../transport/payload.ts";
import { assert, assertEquals } from "../assert.ts";

/** A link carries one element per second. */
const ELEMENT_BYTES = 100_000;
const FAULTS = { ...NO_FAULTS, bytesPerSecond: ELEMENT_BYTES, silenceMs: 3_600_000 };
const OPEN_REQUESTS = 4;
const ELEMENTS = 100;

interface Read {
  /** Virtual time that the elements took, in s. */
  readonly seconds: number;
  /** How many elements were sent, copies included. */
  readonly sent: number;
  /** The longest time between two requests, in ms. */
  readonly silentMs: number;
}

/** Reads from one source with several open requests. */
async function read(requestTimeoutMs: number): Promise<Read> {
  const cluster = new SimCluster({ seed: 1n, faults: FAULTS });
  const nowMs = () => cluster.scheduler.nowUs / 1_000;
  let source: FencedRef<ElementSourceProtocol> | undefined;
  let [heardMs, silentMs] = [0, 0];
  const worker = cluster.addNode("worker", ({ system }) => {
    const repeats = new Repeats(system.world);
    source = system.spawn<ElementSourceProtocol>({
      name: "source",
      create: () => ({
        handlers: {
          getElement: (request, { source }) => {
            silentMs = Math.max(silentMs, nowMs() - heardMs);
            heardMs = nowMs();
            const element = () => new Payload(new Uint8Array(ELEMENT_BYTES));
            const asker = source as Ref<ElementReaderProtocol>;
            return repeats.answer(request, () => ({ kind: "element", element: element() }), asker);
          },
          leave: () => null,
          stats: () => {
            throw new LeatError("unimplemented", "a source without figures");
          },
        },
      }),
    });
  });
  let sent = 0;
  worker.system.inspect((event) => {
    if (event.type !== "send" || event.envelope.kind !== "reply") return;
    const body = event.envelope.body as { readonly kind?: string } | null;
    if (body?.kind === "element") sent++;
  });
  let read = 0;
  cluster.addNode("trainer", ({ system }) => {
    system.spawn({
      name: "client",
      create: (context) => ({
        handlers: {},
        start: () => {
          const fetcher = new ElementFetcher(context, source!, { clientId: 1, requestTimeoutMs });
          const loop = async () => {
            for (;; read++) await fetcher.fetch();
          };
          for (let i = 0; i < OPEN_REQUESTS; i++) context.run(loop);
        },
      }),
    });
  });
  await cluster.run({ until: () => read >= ELEMENTS, timeMaxMs: 3_600_000 });
  assertEquals(read, ELEMENTS);
  return { seconds: nowMs() / 1_000, sent, silentMs };
}

Deno.test("ElementFetcher asks for few copies of answers that take long, and so reads at the link's bandwidth", async () => {
  for (const requestTimeoutMs of [3_000, 1_000]) {
    const { seconds, sent } = await read(requestTimeoutMs);
    const figures = `${requestTimeoutMs} ms: ${ELEMENTS} of ${sent} elements in ${seconds} s`;
    assert(sent < 1.2 * ELEMENTS && seconds < 1.2 * ELEMENTS, figures);
  }
});

Deno.test("ElementFetcher shows its source that it lives while answers take long", async () => {
  const requestTimeoutMs = 1_000;
  const { silentMs } = await read(requestTimeoutMs);
  assert(silentMs < 1.1 * requestTimeoutMs, `${silentMs} ms`);
});
