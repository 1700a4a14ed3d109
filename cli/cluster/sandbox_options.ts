/** The options of a worker that grant permissions to the functions of submitted pipelines. */
import { LeatError } from "../../core/error.ts";
import type { SandboxOptions } from "../../platform/sandbox/grants.ts";
import { requireSecretsOutside, type Secret } from "../../server/secrets_outside.ts";
import { UsageError } from "../lib/args.ts";
import { flag, integer, milliseconds, type Options, texts, type Values } from "../lib/options.ts";

export const SANDBOX_OPTIONS = {
  dataRoot: texts({
    help:
      "A folder, or the beginning of URLs such as s3://bucket/prefix, that pipelines may read; " +
      "modules of their functions, too. By default the current folder.",
    placeholder: "FOLDER|URL",
  }),
  allowNet: texts({
    help: "Hosts that functions may connect to, separated by commas; by default none.",
    placeholder: "HOST[:PORT],…",
  }),
  allowWrite: texts({
    help: "A folder in which pipelines may create files, as cache(path) does; by default none.",
    placeholder: "FOLDER",
  }),
  allowUdfImport: texts({
    help: "Hosts that modules of functions may be imported from, separated by commas; by default " +
      "none.",
    placeholder: "HOST[:PORT],…",
  }),
  allowPython: texts({
    help:
      "A folder of Python files whose functions pipelines may call, with any arguments. Nothing confines these " +
      "functions. By default none.",
    placeholder: "FOLDER",
  }),
  functionHeapMib: integer({
    help: "Limit of the memory for JavaScript values of one task, in MiB; tensors do not count.",
    default: 2_048,
    min: 64,
    max: 1_048_576,
  }),
  functionMemoryMib: integer({
    help:
      "Limit of the memory of the process of one task, in MiB: program, JavaScript values and " +
      "tensors. Linux enforces it.",
    default: 4_096,
    min: 1_024,
    max: 1_048_576,
  }),
  functionTimeoutMs: milliseconds({
    help:
      "A function that does not yield for this long, as an endless loop, ends with its process.",
    default: 120_000,
    min: 100,
  }),
  noSandbox: flag(
    "Lets functions do whatever this program may, its files, network and native code included.",
  ),
} satisfies Options;

/** The files of a worker's secrets, which functions must not read. */
interface SecretFiles {
  readonly key: string | undefined;
  readonly tokenFile: string | undefined;
  readonly tokensFile: string | undefined;
  /** `ADDRESS=FILE`s. */
  readonly serviceTokenFile: readonly string[];
}

/** Reads the sandbox from the values of {@linkcode SANDBOX_OPTIONS}. */
export async function readSandbox(
  values: Values<typeof SANDBOX_OPTIONS> & SecretFiles,
): Promise<SandboxOptions | false> {
  const { dataRoot, allowNet, allowWrite, allowUdfImport, allowPython, noSandbox } = values;
  if (noSandbox) {
    const lists = [dataRoot, allowNet, allowWrite, allowUdfImport, allowPython];
    const isGranting = lists.some((list) => list.length > 0);
    if (!isGranting) return false;
    throw new UsageError(
      "--no-sandbox grants everything, and another option grants a part: give only one of them",
    );
  }
  const dataRoots = dataRoot.length > 0 ? dataRoot : [Deno.cwd()];
  const roots = { dataRoots, writeRoots: allowWrite };
  try {
    await requireSecretsOutside(roots, secretsOf(values));
  } catch (error) {
    throw new UsageError(LeatError.from(error).message, { cause: error });
  }
  return {
    ...roots,
    net: separated(allowNet),
    imports: separated(allowUdfImport),
    pythonRoots: allowPython,
    heapBytesMax: values.functionHeapMib * 2 ** 20,
    memoryBytesMax: values.functionMemoryMib * 2 ** 20,
    stallTimeoutMs: values.functionTimeoutMs,
  };
}

function separated(lists: readonly string[]): string[] {
  return lists.flatMap((list) => list.split(",")).filter((item) => item !== "");
}

function secretsOf({ key, tokenFile, tokensFile, serviceTokenFile }: SecretFiles): Secret[] {
  const files = {
    "--key": [key],
    "--token-file": [tokenFile],
    "--tokens-file": [tokensFile],
    "--service-token-file": serviceTokenFile.map((value) => value.slice(value.indexOf("=") + 1)),
  };
  return Object.entries(files).flatMap(([what, paths]) =>
    paths.flatMap((path) => path === undefined ? [] : [{ what, path }])
  );
}
