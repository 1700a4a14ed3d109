/** The pipelines that Leat's side in Python reads. */
import { Dataset } from "../../../mod.ts";
import type { PeerFiles } from "../files.ts";
import { resizeCrop } from "./images.ts";

const BATCH = 1_024;
const TEXTS = 256;
const LENGTH = 64;

export { resizeCrop as images };

/** Texts as numbers, one for each word, cut or padded to a length. */
export const text = ({ texts }: PeerFiles) =>
  Dataset.textLines([...texts]).repeat()
    .map((line, { length }) => {
      const tokens = new Int32Array(length);
      line.split(" ", length).forEach((word, position) => {
        let hash = 0;
        for (let i = 0; i < word.length; i++) {
          hash = Math.imul(hash, 31) + word.charCodeAt(i) | 0;
        }
        tokens[position] = (hash >>> 0) % 30_000;
      });
      return tokens;
    }, { captures: { length: LENGTH } })
    .batch(TEXTS);

export const numbers = () => Dataset.range(100_000_000).repeat().map((x) => x * 2 + 1).batch(BATCH);

/** A dataset that measures only the hand-over, because its batch is computed once. */
const handedOver = (bytes: number) => () => Dataset.from([new Uint8Array(bytes).fill(1)]).repeat();

export const large = handedOver(10_000_000);
export const small = handedOver(256);
