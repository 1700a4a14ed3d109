/**
 * A training loop: a neural network of TensorFlow.js learns to tell three interleaved spirals apart. A worker on
 * another thread makes, shuffles and batches its data.
 *
 *     deno run -P examples/train.ts
 */
import "@tensorflow/tfjs-backend-cpu";
import { enableProdMode, tensor1d, tensor2d, train } from "@tensorflow/tfjs-core";
import { layers, sequential } from "@tensorflow/tfjs-layers";
import { Dataset, LocalCluster, TensorSpec } from "../mod.ts";

const CLASSES = 3;
const EPOCHS = 12;

enableProdMode(); // Silences TensorFlow.js's advice to install its native backend.
const hidden = layers.dense({ inputShape: [2], units: 48, activation: "relu" });
const output = layers.dense({ units: CLASSES, activation: "softmax" });
const model = sequential({ layers: [hidden, output] });
model.compile({
  optimizer: train.adam(0.02),
  loss: "sparseCategoricalCrossentropy",
  metrics: ["accuracy"],
});

await using cluster = await LocalCluster.start({ workers: 1 });
const batches = Dataset.range(1_500)
  .map((i, { random, classes }) => {
    const label = i % classes;
    const radius = Math.floor(i / classes) / 500;
    const angle = 4 * radius + (2 * Math.PI * label) / classes + 0.3 * random.next();
    return { x: Float32Array.of(radius * Math.cos(angle), radius * Math.sin(angle)), label };
  }, {
    captures: { classes: CLASSES },
    spec: { x: new TensorSpec("float32", [2]), label: new TensorSpec("float32", []) },
  })
  .shuffle(1_500)
  .batch(64)
  .withOptions({ seed: 1 })
  .distribute({ service: cluster, processingMode: "DETERMINISTIC" })
  .prefetch(2);

// Each epoch is a new iteration, in another order.
for (let epoch = 1; epoch <= EPOCHS; epoch++) {
  let [steps, lossSum, accuracySum] = [0, 0, 0];
  for await (const { x, label } of batches) {
    const inputs = tensor2d(x.data as Float32Array, [x.shape[0]!, 2]);
    const labels = tensor1d(label.data as Float32Array);
    const [loss, accuracy] = await model.trainOnBatch(inputs, labels) as number[];
    inputs.dispose();
    labels.dispose();
    lossSum += loss!;
    accuracySum += accuracy!;
    steps++;
  }
  const percent = (100 * accuracySum / steps).toFixed(1);
  console.log(`epoch ${epoch}: loss ${(lossSum / steps).toFixed(4)}, ${percent} % right`);
}
