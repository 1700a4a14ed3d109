/** Images of discs, squares and crosses with noise, and their labels: what `train_images.py` learns. */
import { Dataset } from "@leat/leat";

const SIZE = 24;

export default ({ images = 4_096, batch = 32 }: { images?: number; batch?: number }) =>
  Dataset.range(images)
    .shuffle(1_000)
    .map((i, { random, size }) => {
      const label = i % 3;
      const radius = 5 + random.int(3);
      const [row, column] = [
        radius + random.int(size - 2 * radius),
        radius + random.int(size - 2 * radius),
      ];
      const image = new Float32Array(size * size);
      for (let y = 0; y < size; y++) {
        for (let x = 0; x < size; x++) {
          const [dy, dx] = [Math.abs(y - row), Math.abs(x - column)];
          const isInside = label === 0
            ? dx * dx + dy * dy <= radius * radius
            : label === 1
            ? Math.max(dx, dy) <= radius
            : Math.min(dx, dy) <= 1 && Math.max(dx, dy) <= radius;
          image[y * size + x] = (isInside ? 1 : 0) + 0.2 * random.normal();
        }
      }
      return { image, label };
    }, { captures: { size: SIZE } })
    .batch(batch, { dropRemainder: true });
