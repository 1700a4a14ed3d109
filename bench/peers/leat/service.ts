/** The service: a process with the dispatcher and one worker, and this process as its client. */
import { Dataset, type DistributeOptions, releaseElement, tensor } from "../../../mod.ts";
import { TextLineStream } from "../text_lines.ts";
import { type Pipelines, type Running, taking } from "./step.ts";

const SIZES = { "1kb": 1_000, "150kb": 150_000, "1mb": 1_000_000, "10mb": 10_000_000 };

async function reading(
  bytes: number,
  compression: NonNullable<DistributeOptions["compression"]>,
  sharesSlots: boolean,
): Promise<Running> {
  const program = import.meta.resolve("./service_process.ts");
  const process = new Deno.Command("deno", {
    args: ["run", "--no-prompt", "-P=bench", program, JSON.stringify({ sharesSlots })],
    stdin: "piped",
    stdout: "piped",
  }).spawn();
  const lines = process.stdout.pipeThrough(new TextDecoderStream())
    .pipeThrough(new TextLineStream()).getReader();
  const { value: service = "" } = await lines.read();
  const data = Uint8Array.from({ length: bytes }, (_, at) => (at * 7 + (at >> 8)) & 255);
  const running = taking(
    Dataset.fromTensors({ x: tensor(data) }).repeat().distribute({ service, compression }),
    (batch) => {
      // As Python's reference counting does.
      releaseElement(batch);
      return 1;
    },
  );
  return {
    step: () => running.step(),
    async [Symbol.asyncDispose]() {
      await running[Symbol.asyncDispose]();
      await process.stdin.close();
      await lines.cancel();
      await process.status;
    },
  };
}

export const service: Pipelines = {
  ...Object.fromEntries(
    Object.entries(SIZES).map(([name, bytes]) => [
      `service-${name}`,
      () => reading(bytes, "none", false),
    ]),
  ),
  ...Object.fromEntries(
    Object.entries(SIZES).map(([name, bytes]) => [
      `host-${name}`,
      () => reading(bytes, "none", true),
    ]),
  ),
  "service-1mb-compressed": () => reading(SIZES["1mb"], "zstd", false),
};
