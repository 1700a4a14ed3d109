/** Reads the samples of an archive written for tests. */
import { LeatError } from "../../../../core/error.ts";
import { type SampleOptions, WebDatasetReader } from "../../../../data/formats/tar/web_dataset.ts";
import { assertEquals, assertInstanceOf, assertStringIncludes } from "../../../assert.ts";
import { type FileOptions, open, readAll } from "../reading.ts";
import type { TarEntry } from "../tar_writer.ts";

export const OPTIONS: SampleOptions = {
  extensions: undefined,
  decode: new Set(["txt"]),
  sampleBytesMax: 10_000_000,
};

export function read(
  bytes: Uint8Array,
  options: Partial<SampleOptions> = {},
  file: FileOptions = {},
) {
  return readAll(new WebDatasetReader(open(bytes, file), { ...OPTIONS, ...options }));
}

/** Files that contain their own names. */
export const files = (...names: string[]): TarEntry[] =>
  names.map((name) => ({ name, contents: name }));

/** The keys of samples, and the codes of errors in their place. */
export const keysOf = (found: unknown[]) =>
  found.map((one) => one instanceof LeatError ? one.code : (one as { __key__: string }).__key__);

export function errorIn(found: unknown[], code: string, ...parts: string[]): LeatError {
  const error = found.find((one) => one instanceof LeatError);
  assertInstanceOf(error, LeatError);
  assertEquals(error.code, code, error.message);
  for (const part of parts) assertStringIncludes(error.message, part);
  assertStringIncludes(error.message, "data");
  return error;
}
