/** Every file format, in every compression that is documented for it, read here, on a worker's thread and on a confined worker. */

import { assert, assertEquals, assertRejects, assertStringIncludes } from "../../assert.ts";
import { Dataset, LeatError, LocalCluster, serveDispatcher, serveWorker } from "../../../mod.ts";
import { RGB, writePng } from "../../platform/media/png_writer.ts";
import { TempFolder } from "../../lib/temp_folder.ts";
import { type FormatFile, formatFiles } from "./format_files.ts";

const QUIET = { logLevel: "off" } as const;

/** The elements of a file as texts that name it. The function is sent to where the file is read. */
function textsOf({ what, path, read }: FormatFile, folder: TempFolder): Dataset<string> {
  return read(`${folder.path}/${path}`).map(
    (element, { what }) => {
      const plain = (value: unknown): unknown => {
        if (typeof value === "bigint") return `${value}n`;
        if (typeof value !== "object" || value === null) return value;
        if (value instanceof Uint8Array) return [...value];
        if ("dtype" in value && "shape" in value && "data" in value) {
          return [value.dtype, value.shape, Array.from(value.data as ArrayLike<unknown>)];
        }
        return Object.entries(value).map(([key, part]) => [key, plain(part)]);
      };
      return `${what}: ${
        JSON.stringify(plain(element), (_, x) => typeof x === "bigint" ? `${x}n` : x)
      }`;
    },
    { captures: { what } },
  );
}

/** All files in one job: a job each would take longer to start than to read. */
function allTexts(files: readonly FormatFile[], folder: TempFolder): Dataset<string> {
  const [first, ...others] = files.map((file) => textsOf(file, folder));
  return others.reduce((all, texts) => all.concatenate(texts), first!);
}

/** Elements read elsewhere equal those read here. */
async function assertSame(
  files: readonly FormatFile[],
  folder: TempFolder,
  place: (dataset: Dataset<string>) => Dataset<string>,
): Promise<void> {
  const dataset = allTexts(files, folder);
  const here = await Array.fromAsync(dataset);
  for (const { what } of files) assert(here.some((text) => text.startsWith(`${what}: `)), what);
  assertEquals((await Array.fromAsync(place(dataset))).sort(), here.sort());
}

async function writeAll(files: readonly FormatFile[]): Promise<TempFolder> {
  return await TempFolder.make(
    Object.fromEntries(files.map(({ path, contents }) => [path, contents])),
  );
}

Deno.test("every format gives the same in every compression in this process", async () => {
  const files = await formatFiles();
  await using folder = await writeAll(files);
  const found = new Map<string, string[]>();
  for (const file of files) {
    // Paths are part of some elements.
    const texts = (await Array.fromAsync(textsOf(file, folder)))
      .map((text) => text.slice(file.what.length).replaceAll(file.path, "path"));
    assert(texts.length > 0, file.what);
    const kind = file.what.startsWith("imageFolder") ? file.what : file.what.split(",")[0]!;
    if (!found.has(kind)) found.set(kind, texts);
    assertEquals(texts, found.get(kind), file.what);
  }
});

Deno.test("every format and compression is read on a worker's thread", async () => {
  const files = await formatFiles();
  await using folder = await writeAll(files);
  await using service = await LocalCluster.start({ ...QUIET, workers: 1 });
  await assertSame(files, folder, (dataset) => dataset.distribute({ service }));
});

Deno.test("every format and compression is read on a confined worker", async () => {
  const files = await formatFiles();
  await using folder = await writeAll(files);
  await using dispatcher = await serveDispatcher(QUIET);
  const service = dispatcher.address;
  const sandbox = { dataRoots: [folder.path] };
  await using _worker = await serveWorker({ ...QUIET, dispatcher: service, sandbox });
  await assertSame(files, folder, (dataset) => dataset.distribute({ service }));
});

Deno.test("a worker's limit of memory for an image holds on its threads and on a confined worker", async () => {
  const png = writePng({ width: 64, height: 64, depth: 8, colour: RGB, at: () => 7 });
  await using folder = await TempFolder.make({ "class/image.png": png });
  const images = Dataset.imageFolder(folder.path);
  const limits = { imageBytesMax: 64 * 64 * 3, ...QUIET };
  const refusal = async (service: LocalCluster | string) => {
    const error = await assertRejects(
      () => Array.fromAsync(images.distribute({ service })),
      LeatError,
    ) as LeatError;
    assertEquals(error.code, "resource_exhausted");
    assertStringIncludes(error.message, "--image-mib");
  };
  await using cluster = await LocalCluster.start({ ...limits, workers: 1 });
  await refusal(cluster);
  await using dispatcher = await serveDispatcher(QUIET);
  const sandbox = { dataRoots: [folder.path] };
  const service = dispatcher.address;
  await using _worker = await serveWorker({ ...limits, dispatcher: service, sandbox });
  await refusal(service);
});
