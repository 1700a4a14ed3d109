/** The program of a thread that decodes JPEGs. */

import { parentPort } from "node:worker_threads";
import { TYPED_ARRAYS, type TypedArray } from "../../../core/dtype.ts";
import { packError } from "../../../data/threads/packed_error.ts";
import { Resampler, transform } from "../resampling/resampler.ts";
import type { Reply } from "../../threads/asked_thread.ts";
import type { DecodingRequest } from "./decoding_threads.ts";
import { openTurboLibrary } from "./turbo_library.ts";

const { symbols } = openTurboLibrary()!;
const resampler = new Resampler();
/** The memory of the last result, kept because the next is often as large. */
let lastResult: TypedArray = new Uint8Array();

function decode(request: DecodingRequest): number {
  const { handle, file, fileBytes, pixels, pixelFormat, region, plan } = request;
  const status = symbols.tj3Decompress8(handle, file, fileBytes, pixels, 0, pixelFormat);
  if (status !== 0) return status;
  const byteLength = region.width * region.height * plan.channels;
  symbols.copyOut(resampler.pixels(byteLength), pixels, BigInt(byteLength));
  if (typeof request.result !== "bigint") {
    transform(resampler, plan, region, request.result);
    return status;
  }
  const length = plan.shape.reduce((size, length) => size * length, 1);
  const Values = TYPED_ARRAYS[plan.dtype];
  if (lastResult.constructor !== Values || lastResult.length !== length) {
    lastResult = new Values(length);
  }
  transform(resampler, plan, region, lastResult);
  symbols.copyIn(
    request.result,
    lastResult as Uint8Array<ArrayBuffer>,
    BigInt(lastResult.byteLength),
  );
  return status;
}

parentPort!.once("message", (port: MessagePort) => {
  port.onmessage = ({ data }: MessageEvent<DecodingRequest>) => {
    const { number } = data;
    let reply: Reply<number>;
    try {
      reply = { number, answer: decode(data) };
    } catch (error) {
      reply = { number, error: packError(error) };
    }
    port.postMessage(reply);
  };
  port.postMessage("ready");
});
