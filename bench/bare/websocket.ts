/**
 * Measures messages that a client requests over a bare WebSocket on loopback, from a server on another
 * thread or in another process: 1 MB with 8 in flight, and 1 KB with 64.
 */

import { fileURLToPath } from "node:url";
import { type Load, pipelinedLoad, printMeasured } from "./load.ts";

/** Where the server runs. */
type ServerLocation = "thread" | "process";

/** A size of messages, and the number of concurrent requests. */
export interface Traffic {
  readonly messageBytes: number;
  readonly inFlight: number;
}

export const LARGE: Traffic = { messageBytes: 1_000_000, inFlight: 8 };
export const SMALL: Traffic = { messageBytes: 1_000, inFlight: 64 };

const SERVER = new URL("./websocket_server.ts", import.meta.url);

interface Server {
  readonly port: number;
  close(): Promise<void>;
}

/** Opens the load, whose unit is a message. */
export async function open(traffic: Traffic, location: ServerLocation): Promise<Load> {
  const server = await (location === "thread" ? startThread() : startProcess());
  const socket = new WebSocket(`ws://127.0.0.1:${server.port}/`);
  socket.binaryType = "arraybuffer";
  await new Promise((resolve, reject) => {
    socket.onopen = resolve;
    socket.onerror = () => reject(new Error(`no server at port ${server.port}`));
  });
  const waiting: ((bytes: ArrayBuffer) => void)[] = [];
  socket.onmessage = ({ data }) => waiting.shift()?.(data);
  const request = new Uint8Array(4);
  new DataView(request.buffer).setUint32(0, traffic.messageBytes);
  const pull = async (): Promise<number> => {
    const answer = new Promise<ArrayBuffer>((resolve) => waiting.push(resolve));
    socket.send(request);
    const { byteLength } = await answer;
    if (byteLength !== traffic.messageBytes) throw new Error(`${byteLength} bytes arrived`);
    return 1;
  };
  return pipelinedLoad(traffic.inFlight, pull, async () => {
    const closed = new Promise((resolve) => socket.onclose = resolve);
    socket.close();
    await closed;
    await server.close();
  });
}

function startThread(): Promise<Server> {
  const worker = new Worker(SERVER, { type: "module" });
  return new Promise((resolve) => {
    worker.onmessage = ({ data: port }) =>
      resolve({ port, close: () => Promise.resolve(worker.terminate()) });
  });
}

async function startProcess(): Promise<Server> {
  const process = new Deno.Command("deno", {
    args: ["run", "--quiet", "--allow-net=127.0.0.1", fileURLToPath(SERVER)],
    stdin: "null",
    stdout: "piped",
  }).spawn();
  const lines = process.stdout.pipeThrough(new TextDecoderStream()).getReader();
  const { value = "" } = await lines.read();
  const port = Number(value);
  if (!(port > 0)) throw new Error(`the server's first line was '${value}', not its port`);
  return {
    port,
    async close() {
      process.kill("SIGTERM");
      await lines.cancel();
      await process.status;
    },
  };
}

if (import.meta.main) {
  for (const traffic of [LARGE, SMALL]) {
    const size = traffic === LARGE ? "1 MB" : "1 KB";
    for (const location of ["thread", "process"] as const) {
      const name = `bare WebSocket, ${size}, ${location}`;
      await printMeasured(name, "messages/s", () => open(traffic, location));
    }
  }
}
