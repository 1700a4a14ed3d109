/**
 * Compares the cost of encoding and decoding with bare msgpackr and with a bare copy:
 * `deno run bench/costs/codec.ts`.
 */

import { Packr } from "msgpackr/pack";
import { tensor } from "../../core/tensor.ts";
import { decodeMessage, encodeMessage } from "../../transport/codec.ts";

const CONTROL = {
  kind: "ask",
  from: { node: "client-1", path: "reader" },
  to: { node: "worker-3", path: "worker/tasks/7", incarnation: "f00dfeed12345678.2" },
  seq: 4711,
  body: { type: "getElement", task: 7, client: 3, sequence: 815, credit: 1048576 },
};

const MEGABYTE = { image: tensor(new Uint8Array(1 << 20), { shape: [16, 256, 256] }), label: 3 };

/** Returns the ns per call in the fastest round, because other programs can only slow a round down. */
function nsPerCall(rounds: number, calls: number, fn: () => unknown): number {
  let best = Infinity;
  for (let round = 0; round < rounds; round++) {
    const start = performance.now();
    for (let i = 0; i < calls; i++) fn();
    best = Math.min(best, (performance.now() - start) * 1e6 / calls);
  }
  return best;
}

function report(name: string, ns: number, bareName: string, bareNs: number): void {
  const ratio = (ns / bareNs).toFixed(2);
  console.log(`${name}: ${ns.toFixed(0)} ns; ${bareName}: ${bareNs.toFixed(0)} ns; ratio ${ratio}`);
}

const bare = new Packr({ useRecords: false });
const packed = new Uint8Array(bare.pack(CONTROL));
const frame = encodeMessage(CONTROL);
const [rounds, calls] = [10, 100_000];

report(
  "encode control message",
  nsPerCall(rounds, calls, () => encodeMessage(CONTROL)),
  "msgpackr pack, owned",
  nsPerCall(rounds, calls, () => new Uint8Array(bare.pack(CONTROL))),
);
report(
  "decode control message",
  nsPerCall(rounds, calls, () => decodeMessage(frame)),
  "msgpackr unpack",
  nsPerCall(rounds, calls, () => bare.unpack(packed)),
);

const source = new Uint8Array(1 << 20);
const large = encodeMessage(MEGABYTE);
report(
  "encode 1 MiB tensor",
  nsPerCall(rounds, 200, () => encodeMessage(MEGABYTE)),
  "bare copy",
  nsPerCall(rounds, 200, () => source.slice()),
);
report(
  "decode 1 MiB tensor",
  nsPerCall(rounds, calls, () => decodeMessage(large)),
  "bare view",
  nsPerCall(rounds, calls, () => new Uint8Array(large.buffer, 64, 1 << 20)),
);
