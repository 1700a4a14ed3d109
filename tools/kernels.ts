/**
 * Writes the WebAssembly that Leat contains, as Base64 in a module, from its source:
 *
 *     deno task kernels
 */
import wabt from "wabt";
import { runProgram } from "../cli/lib/args.ts";
import type { Program } from "../cli/lib/help.ts";

const SOURCE = new URL("../platform/media/resampling/row.wat", import.meta.url);
const BUILT = new URL("../platform/media/resampling/row_wasm.ts", import.meta.url);

const PROGRAM: Program<Record<never, never>> = {
  usage: "deno task kernels",
  summary: "Writes the WebAssembly that Leat contains, as Base64 in a module, from its source.",
  options: {},
};

/** Returns the text of the module. */
export async function kernelModule(): Promise<string> {
  const { parseWat } = await wabt();
  const parsed = parseWat("row.wat", await Deno.readTextFile(SOURCE), { simd: true });
  const base64 = new Uint8Array(parsed.toBinary({}).buffer).toBase64();
  parsed.destroy();
  return `/** \`row.wat\` as WebAssembly in Base64; \`deno task kernels\` writes this file. */
export const ROW_WASM =
  "${base64}";
`;
}

if (import.meta.main) {
  await runProgram(PROGRAM, async () => await Deno.writeTextFile(BUILT, await kernelModule()));
}
