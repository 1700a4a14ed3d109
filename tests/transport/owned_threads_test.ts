/** Threads that the hub starts for its nodes. */
import { OwnedThreads } from "../../transport/start_thread.ts";
import { assertEquals, assertStringIncludes } from "../assert.ts";

/** A program that echoes messages on its port; on "throw" it dies. */
const PROGRAM = `data:application/javascript,${
  encodeURIComponent(`
    addEventListener("message", ({ data: port }) => {
      port.onmessage = ({ data }) => {
        if (data === "throw") throw new Error("thrown there");
        port.postMessage(data);
      };
    }, { once: true });
  `)
}`;

function echoOf(port: MessagePort, message: string): Promise<unknown> {
  const { promise, resolve } = Promise.withResolvers<unknown>();
  port.onmessage = ({ data }) => resolve(data);
  port.postMessage(message);
  return promise;
}

Deno.test("a node's thread uses the port that it is given, and ends on request", async () => {
  const threads = new OwnedThreads();
  const { port1, port2 } = new MessageChannel();
  const ended = threads.run(1, PROGRAM, "echo", port2);
  assertEquals(await echoOf(port1, "hello"), "hello");
  threads.end(2);
  threads.end(1);
  assertEquals(await ended, "it was ended");
  port1.close();
});

Deno.test("a node's thread that dies reports the reason, and harms nothing else", async () => {
  const threads = new OwnedThreads();
  const channels = [new MessageChannel(), new MessageChannel()];
  const ends = channels.map(({ port2 }, id) => threads.run(id, PROGRAM, "echo", port2));
  const [dying, other] = channels.map(({ port1 }) => port1) as [MessagePort, MessagePort];
  dying.postMessage("throw");
  assertStringIncludes(await ends[0]!, "thrown there");
  assertEquals(await echoOf(other, "still here"), "still here");
  threads.close();
  assertEquals(await ends[1], "it was ended");
  for (const { port1 } of channels) port1.close();
});

Deno.test("OwnedThreads keeps nothing of a thread that died", async () => {
  const original = Worker;
  let terminated = 0;
  globalThis.Worker = class extends original {
    override terminate() {
      terminated++;
      super.terminate();
    }
  };
  try {
    const threads = new OwnedThreads();
    const { port1, port2 } = new MessageChannel();
    const ended = threads.run(1, PROGRAM, "echo", port2);
    port1.postMessage("throw");
    await ended;
    threads.close();
    port1.close();
  } finally {
    globalThis.Worker = original;
  }
  assertEquals(terminated, 0);
});

Deno.test("an ended node gets no more threads", async () => {
  const threads = new OwnedThreads();
  threads.close();
  const { port1, port2 } = new MessageChannel();
  assertEquals(await threads.run(1, PROGRAM, "echo", port2), "its owner is gone");
  port1.close();
});
