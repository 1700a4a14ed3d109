/** The program of threads in the tests of `thread_hub.ts`. */
import type { ActorFactory } from "../../actors/runtime/actor.ts";
import type { Ref } from "../../actors/runtime/ref.ts";
import { LeatError } from "../../core/error.ts";
import { Payload } from "../../transport/payload.ts";
import type { StartThread } from "../../transport/start_thread.ts";
import type { NodeContext, NodeParts } from "../../transport/thread_control.ts";

/** The protocol of the actor on each thread. */
export interface Remote {
  echo(value: unknown): unknown;
  /** Forwards the request to another one. */
  relay(request: { to: Ref<Remote>; value: unknown }): unknown;
  /** A payload of so many bytes, each its index modulo 251. */
  block(bytes: number): Payload;
  /** Never answers. */
  wait(request: null): null;
  /** Keeps the thread busy. */
  spin(ms: number): null;
  /** Keeps it busy as long as a file exists. */
  spinBeside(path: string): null;
  /** Throws an uncaught error: the whole thread dies. */
  die(request: null): null;
  /** Ends its node's thread for a reason. */
  giveUp(message: string): null;
  /** Starts a thread that it ends, and one that dies. Answers with the reasons of their deaths. */
  threadDeaths(request: null): string[];
  /** Watches another one, and answers with its end. */
  watchEnd(target: Ref): { code: string; message: string };
}

let endNode: NodeContext["endNode"];
let startThread: StartThread;

const createRemote: ActorFactory<Remote> = (context) => {
  return {
    handlers: {
      echo: (value) => value,
      relay: ({ to, value }) => context.ask(to, "echo", value, { timeoutMs: 60_000 }),
      block: (bytes) => new Payload(Uint8Array.from({ length: bytes }, (_, i) => i % 251)),
      wait: () => new Promise<null>(() => {}),
      spin(ms) {
        const until = performance.now() + ms;
        while (performance.now() < until);
        return null;
      },
      spinBeside(path) {
        for (;;) {
          try {
            Deno.statSync(path);
          } catch {
            return null;
          }
        }
      },
      die() {
        setTimeout(() => {
          throw new Error("died of the test");
        });
        return new Promise<null>(() => {});
      },
      giveUp(message) {
        endNode(new LeatError("data_loss", message));
        return new Promise<null>(() => {});
      },
      async threadDeaths() {
        const deaths: string[] = [];
        // Both wait for their port: Deno leaks the port of a message to a thread that has ended.
        const start = (listener: string, onDeath: (why: string) => void) =>
          startThread(
            `data:application/javascript,addEventListener("message", () => { ${listener} })`,
            "short",
            onePort(),
            onDeath,
          );
        start("", (why) => deaths.push(why))();
        await new Promise<void>((resolve) => {
          start("throw 'died of the test'", (why) => {
            deaths.push(why);
            resolve();
          });
        });
        return deaths;
      },
      watchEnd: (target) =>
        new Promise<{ code: string; message: string }>((resolve) => {
          context.watch(target, ({ code, message }) => resolve({ code, message }));
        }),
    },
  };
};

/** A port whose other end is closed. */
function onePort(): MessagePort {
  const { port1, port2 } = new MessageChannel();
  port1.close();
  return port2;
}

/** Makes a thread of the node hold the lock of a file for its whole life. */
async function lockOnThread(path: string): Promise<void> {
  const program = `addEventListener("message", ({ data: port }) => {
    globalThis.file = Deno.openSync(${JSON.stringify(path)});
    file.lockSync(true);
    port.postMessage("locked");
  }, { once: true });`;
  const url = `data:application/javascript,${encodeURIComponent(program)}`;
  const { port1, port2 } = new MessageChannel();
  await new Promise((resolve) => {
    port1.onmessage = resolve;
    startThread(url, "locker", port2, resolve);
  });
  port1.close();
}

/** See `NodeSetup`. */
export async function setup(context: NodeContext): Promise<NodeParts> {
  const { config } = context;
  ({ endNode, startThread } = context);
  if (config === "broken") throw new LeatError("not_found", "broken on purpose");
  if (typeof config === "object") {
    await lockOnThread((config as { lock: string }).lock);
  }
  return {
    kinds: { remote: () => ({ create: createRemote }) },
    started(system) {
      if (config === "with actor") system.spawn({ name: "remote", create: createRemote });
    },
    async stopped() {
      if (config === "slow to stop") await new Promise((resolve) => setTimeout(resolve, 50));
    },
  };
}
