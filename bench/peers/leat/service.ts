/** The service: a process with the dispatcher and one worker, and this process as its client. */
import { Dataset, type DistributeOptions, releaseElement, tensor } from "../../../mod.ts";
import { LineStream } from "../../../cli/lib/line_stream.ts";
import type { ServiceOptions } from "./service_process.ts";
import { type Pipelines, type Running, taking } from "./step.ts";

const SIZES = { "1kb": 1_000, "150kb": 150_000, "1mb": 1_000_000, "10mb": 10_000_000 };

/** What a client reads in an endless repetition, and how. */
interface Read {
  readonly dataset: Dataset<unknown>;
  readonly options?: Omit<DistributeOptions, "service">;
  readonly started?: ServiceOptions;
}

/** Starts a service. Disposing it ends its process. */
export async function startService(started: ServiceOptions) {
  const program = import.meta.resolve("./service_process.ts");
  const process = new Deno.Command("deno", {
    args: ["run", "--no-prompt", "-P=bench", program, JSON.stringify(started)],
    stdin: "piped",
    stdout: "piped",
  }).spawn();
  const lines = process.stdout.pipeThrough(new LineStream()).getReader();
  const { value: address = "" } = await lines.read();
  return {
    address,
    async [Symbol.asyncDispose]() {
      await process.stdin.close();
      await lines.cancel();
      await process.status;
    },
  };
}

async function reading({ dataset, options, started = {} }: Read): Promise<Running> {
  const service = await startService(started);
  const running = taking(
    dataset.repeat().distribute({
      compression: "none",
      ...options,
      service: service.address,
    }),
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
      await service[Symbol.asyncDispose]();
    },
  };
}

function payload(bytes: number): Dataset<unknown> {
  const data = Uint8Array.from({ length: bytes }, (_, at) => (at * 7 + (at >> 8)) & 255);
  return Dataset.fromTensors({ x: tensor(data) });
}

/** Durable: the dispatcher journals every split. Each of the 256 elements is a split of its own. */
async function splits(): Promise<Running> {
  const journal = await Deno.makeTempDir();
  const running = await reading({
    dataset: Dataset.range(256),
    options: { processingMode: "DYNAMIC" },
    started: { dispatcher: { journal } },
  });
  return {
    step: () => running.step(),
    async [Symbol.asyncDispose]() {
      await running[Symbol.asyncDispose]();
      await Deno.remove(journal, { recursive: true });
    },
  };
}

export const service: Pipelines = {
  ...Object.fromEntries(
    Object.entries(SIZES).flatMap(([name, bytes]) =>
      ([["service", false], ["host", true]] as const).map(([part, sharesSlots]) => [
        `${part}-${name}`,
        () => reading({ dataset: payload(bytes), started: { worker: { sharesSlots } } }),
      ])
    ),
  ),
  "service-1mb-compressed": () =>
    reading({
      dataset: payload(SIZES["1mb"]),
      options: { compression: "zstd" },
      started: { worker: { sharesSlots: false } },
    }),
  "service-splits": splits,
};
