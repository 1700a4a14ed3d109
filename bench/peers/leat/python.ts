/** The pipelines that Leat's side in Python reads. */
import { Dataset } from "../../../mod.ts";
import type { PeerFiles } from "../files.ts";
import { resizeCrop } from "./images.ts";

const BATCH = 1_024;
const TEXTS = 256;
const LENGTH = 64;

export { resizeCrop as images };

/** Words as numbers, cut or padded to a length. */
export const text = ({ texts }: PeerFiles) =>
  Dataset.textLines([...texts]).repeat()
    .map((line, { length }) => {
      const tokens = new Int32Array(length);
      line.split(" ", length).forEach((word, place) => {
        let hash = 0;
        for (let at = 0; at < word.length; at++) {
          hash = Math.imul(hash, 31) + word.charCodeAt(at) | 0;
        }
        tokens[place] = (hash >>> 0) % 30_000;
      });
      return tokens;
    }, { captures: { length: LENGTH } })
    .batch(TEXTS);

export const numbers = () => Dataset.range(100_000_000).repeat().map((x) => x * 2 + 1).batch(BATCH);

/** Measures only the hand-over, because the batch is computed once. */
const handedOver = (bytes: number) => () => Dataset.from([new Uint8Array(bytes).fill(1)]).repeat();

export const large = handedOver(10_000_000);
export const small = handedOver(256);
