/** Text: split into words, hashed, put into buckets by length and padded. */
import { Dataset } from "../../../mod.ts";
import { type Pipelines, taking } from "./step.ts";

export const texts: Pipelines = {
  "text-bucket-pad": ({ texts }) =>
    taking(
      Dataset.textLines([...texts]).repeat()
        .map((line) =>
          Int32Array.from(line.split(" "), (word) => {
            let hash = 0;
            for (let at = 0; at < word.length; at++) {
              hash = Math.imul(hash, 31) + word.charCodeAt(at) | 0;
            }
            return (hash >>> 0) % 30_000;
          })
        )
        .bucketBySequenceLength({
          length: (tokens) => tokens.length,
          boundaries: [16, 32, 48, 64, 80, 96],
          batchSizes: [64, 64, 64, 64, 64, 64, 64],
        }).prefetch(-1),
      ({ shape }) => shape[0]!,
    ),
};
