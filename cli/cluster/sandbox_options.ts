/** The options of a worker that grant permissions to the functions of submitted pipelines. */
import { LeatError } from "../../core/error.ts";
import { definedFields } from "../../core/tree.ts";
import { PYTHON } from "../../platform/python/python_pool.ts";
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
      "functions. By default none. Not with deno task: deno run -P=server " +
      "--allow-run=deno,python3 cli/worker.ts has the permission.",
    placeholder: "FOLDER",
  }),
  functionHeapMib: integer({
    help:
      "Limit of the memory for JavaScript values of one task, in MiB; tensors do not count. By " +
      "default 2,048, or --function-memory-mib if that is less.",
    min: 64,
    max: 1_048_576,
  }),
  functionMemoryMib: integer({
    help:
      "Limit of the memory of the process of one task, in MiB: program, JavaScript values and " +
      "tensors. Linux enforces it. By default 4,096.",
    min: 1_024,
    max: 1_048_576,
  }),
  functionTimeoutMs: milliseconds({
    help:
      "A function that does not yield for this long, as an endless loop, ends with its process. " +
      "By default 120,000.",
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

/**
 * Refuses what has no effect beside `--no-sandbox`.
 * @throws {UsageError}
 */
export function checkSandbox(values: Values<typeof SANDBOX_OPTIONS>): void {
  if (!values.noSandbox) return;
  const { dataRoot, allowNet, allowWrite, allowUdfImport, allowPython } = values;
  const grants = {
    "--data-root": dataRoot,
    "--allow-net": allowNet,
    "--allow-write": allowWrite,
    "--allow-udf-import": allowUdfImport,
    "--allow-python": allowPython,
  };
  const grant = Object.entries(grants).find(([, list]) => list.length > 0);
  if (grant !== undefined) {
    const [option, [value]] = grant;
    throw new UsageError(
      `--no-sandbox grants everything, and ${option} ${value} grants a part: give only one of them`,
    );
  }
  const limits = {
    "--function-heap-mib": values.functionHeapMib,
    "--function-memory-mib": values.functionMemoryMib,
    "--function-timeout-ms": values.functionTimeoutMs,
  };
  const limit = Object.entries(limits).find(([, value]) => value !== undefined);
  if (limit === undefined) return;
  throw new UsageError(
    `--no-sandbox limits nothing, and ${limit[0]} limits the sandbox: give only one of them`,
  );
}

/** Reads the sandbox from the values of {@linkcode SANDBOX_OPTIONS}. */
export async function readSandbox(
  values: Values<typeof SANDBOX_OPTIONS> & SecretFiles,
): Promise<SandboxOptions | false> {
  const { dataRoot, allowNet, allowWrite, allowUdfImport, allowPython, noSandbox } = values;
  if (noSandbox) return false;
  if (allowPython.length > 0) requirePython();
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
    ...definedFields({
      heapBytesMax: bytesOf(values.functionHeapMib),
      memoryBytesMax: bytesOf(values.functionMemoryMib),
      stallTimeoutMs: values.functionTimeoutMs,
    }),
  };
}

function bytesOf(mib: number | undefined): number | undefined {
  return mib === undefined ? undefined : mib * 2 ** 20;
}

/** Deno's tasks cannot be given a further permission, so the remedy is another command. */
function requirePython(): void {
  if (Deno.permissions.querySync({ name: "run", command: PYTHON }).state === "granted") return;
  throw new UsageError(
    `--allow-python needs the permission to run ${PYTHON}, which the task does not have: start the ` +
      `worker with deno run -P=server --allow-run=deno,${PYTHON} cli/worker.ts`,
  );
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
