/** Pipelines that read from a service: a process with the dispatcher and one worker. */
import { Dataset, type DistributeOptions, releaseElement, tensor } from "../../../mod.ts";
import { LineStream } from "../../../cli/lib/line_stream.ts";
import type { ServiceOptions } from "./service_process.ts";
import { type Pipelines, type Running, taking } from "./step.ts";

const SIZES = { "1kb": 1_000, "150kb": 150_000, "1mb": 1_000_000, "10mb": 10_000_000 };

/** The dataset that a client reads, endlessly repeated, and options. */
interface Read {
  readonly dataset: Dataset<unknown>;
  readonly options?: Omit<DistributeOptions, "service">;
  readonly serviceOptions?: ServiceOptions;
}

/** Starts a service. Disposing it ends its process. */
export async function startService(options: ServiceOptions) {
  const program = import.meta.resolve("./service_process.ts");
  const process = new Deno.Command("deno", {
    args: ["run", "--no-prompt", "-P=bench", program, JSON.stringify(options)],
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

async function reading({ dataset, options, serviceOptions = {} }: Read): Promise<Running> {
  const service = await startService(serviceOptions);
  const running = taking(
    dataset.repeat().distribute({
      compression: "none",
      ...options,
      service: service.address,
    }),
    (batch) => {
      // Frees the batch, as Python's reference counting does.
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
  const data = Uint8Array.from({ length: bytes }, (_, i) => (i * 7 + (i >> 8)) & 255);
  return Dataset.fromTensors({ x: tensor(data) });
}

/** Reads 256 elements, each of which is a split. The dispatcher journals every split. */
async function splits(): Promise<Running> {
  const journal = await Deno.makeTempDir();
  const running = await reading({
    dataset: Dataset.range(256),
    options: { processingMode: "DYNAMIC" },
    serviceOptions: { dispatcher: { journal } },
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
        () => reading({ dataset: payload(bytes), serviceOptions: { worker: { sharesSlots } } }),
      ])
    ),
  ),
  "service-1mb-compressed": () =>
    reading({
      dataset: payload(SIZES["1mb"]),
      options: { compression: "zstd" },
      serviceOptions: { worker: { sharesSlots: false } },
    }),
  "service-splits": splits,
};
