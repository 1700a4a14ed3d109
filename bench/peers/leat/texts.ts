/** A pipeline of text, which is split into words, hashed, batched by length and padded. */
import { Dataset } from "../../../mod.ts";
import { type Pipelines, taking } from "./step.ts";

export const texts: Pipelines = {
  "text-bucket-pad": ({ texts }) =>
    taking(
      Dataset.textLines([...texts]).repeat()
        .map((line) =>
          Int32Array.from(line.split(" "), (word) => {
            let hash = 0;
            for (let i = 0; i < word.length; i++) {
              hash = Math.imul(hash, 31) + word.charCodeAt(i) | 0;
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
