/**
 * Compares one client of eight workers over sockets with eight bare sockets, and measures what
 * compression costs where it gains nothing, as on loopback.
 */
import type { Tensor } from "../../core/tensor.ts";
import { Dataset, type DistributeOptions, LocalCluster, tensor } from "../../mod.ts";
import { type Load, pipelinedLoad } from "../bare/load.ts";
import { LARGE, open as openSocket } from "../bare/websocket.ts";
import type { Bench } from "../lib/bench.ts";

const WORKERS = 8;
const BYTES = LARGE.messageBytes;
/** How many open requests a client has at each task at first. */
const IN_FLIGHT = 2;

/** Opens eight bare sockets, each to another thread. The unit is a message. */
async function openSockets(): Promise<Load> {
  const traffic = { messageBytes: BYTES, inFlight: IN_FLIGHT };
  const sockets = await Promise.all(
    Array.from({ length: WORKERS }, () => openSocket(traffic, "thread")),
  );
  return {
    async window(ms) {
      const rates = await Promise.all(sockets.map((socket) => socket.window(ms)));
      return rates.reduce((sum, rate) => sum + rate, 0);
    },
    async [Symbol.asyncDispose]() {
      for (const socket of sockets) await socket[Symbol.asyncDispose]();
    },
  };
}

interface Reading {
  readonly workers: number;
  readonly bytes: Uint8Array;
  readonly compression: NonNullable<DistributeOptions["compression"]>;
}

/** Opens a training loop that only reads. The unit is an element. */
async function openReader({ workers, bytes, compression }: Reading): Promise<Load> {
  // Inline runners, because the bench measures the path from a worker to the loop.
  const cluster = await LocalCluster.start({
    workers,
    carrier: "websocket",
    runners: "inline",
    logLevel: "off",
  });
  const iterator = Dataset.fromTensors({ image: tensor(bytes) }).repeat()
    .distribute({ service: cluster, compression }).iterator();
  const take = async () => {
    const { value } = await iterator.next();
    const { image } = value as { image: Tensor };
    if (image.data.length !== bytes.length) throw new Error(`${image.data.length} bytes arrived`);
    return 1;
  };
  return pipelinedLoad(1, take, async () => {
    await iterator.return!();
    await cluster.close();
  });
}

/** Returns bytes that zstd compresses to about a third. */
function smaller(): Uint8Array {
  const random = noise();
  return random.map((byte, i) => (byte & 3) + (i >> 10));
}

/** Returns bytes that cannot be compressed. */
function noise(): Uint8Array {
  const bytes = new Uint8Array(BYTES);
  for (let start = 0; start < BYTES; start += 65_536) {
    crypto.getRandomValues(bytes.subarray(start, start + 65_536));
  }
  return bytes;
}

const MEGABYTES = { unit: "MB/s", scale: BYTES / 1e6 };

function compared(name: string, floor: number, reading: Pick<Reading, "bytes" | "compression">) {
  return {
    ...MEGABYTES,
    name,
    floor,
    bare: () => openReader({ ...reading, workers: 1, compression: "none" }),
    leat: () => openReader({ ...reading, workers: 1 }),
  };
}

export const benches: Bench[] = [
  {
    ...MEGABYTES,
    name: "one client of 8 workers, 1 MB",
    floor: 0.4,
    bare: openSockets,
    leat: () => openReader({ workers: WORKERS, bytes: noise(), compression: "auto" }),
  },
  compared("auto, 1 MB of noise, against none", 0.8, { bytes: noise(), compression: "auto" }),
  compared("zstd, 1 MB of noise, against none", 0.3, { bytes: noise(), compression: "zstd" }),
  compared("zstd, 1 MB smaller, against none", 0.1, { bytes: smaller(), compression: "zstd" }),
];
