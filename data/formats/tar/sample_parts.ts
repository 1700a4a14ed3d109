/** Names and decoders of the parts of a WebDataset sample. */
import { LeatError } from "../../../core/error.ts";
import { parseJson } from "../../../core/json.ts";
import { show } from "../../check.ts";

/** The key of the sample's name in its element. */
export const SAMPLE_KEY = "__key__";

/** An extension whose parts can be decoded. */
export type DecodedExtension = "json" | "txt" | "cls";

/** The decoders, by the last part of the extension. */
export const PART_DECODERS = {
  json: (contents: Uint8Array): unknown => parseJson(decodeText(contents)),
  txt: decodeText,
  cls: decodeClass,
} as const satisfies Record<DecodedExtension, unknown>;

function decodeText(contents: Uint8Array): string {
  return new TextDecoder("utf-8", { fatal: true }).decode(contents);
}

function decodeClass(contents: Uint8Array): number {
  const text = decodeText(contents).trim();
  const shown = show(text);
  if (!/^[+-]?\d+$/.test(text)) throw new LeatError("data_loss", `${shown} is no whole number`);
  const number = Number(text);
  // The spec of a class says int32: a batch would have another number.
  if (number === (number | 0)) return number;
  throw new LeatError(
    "data_loss",
    `${shown} is beyond int32; decode it by a function, without "cls" in \`decode\``,
  );
}
