/** Spectrograms as text. */

import type { Tensor } from "../../mod.ts";

/** From silent to loud. */
const SHADES = " ░▒▓█";
/** Sounds that are this much softer than the loudest are drawn as silence. */
const RANGE_DECIBELS = 40;

/** The size of a drawing, in characters. */
interface DrawingSize {
  readonly columns: number;
  readonly rows: number;
}

/**
 * Draws a spectrogram: time runs to the right, pitch upwards. A character shows the loudest value
 * in its area.
 * @param mel magnitudes of shape [frames, mel bins].
 */
export function drawSpectrogram(mel: Tensor, size: DrawingSize): string {
  const [frames = 0, bins = 0] = mel.shape;
  const data = mel.data as Float32Array;
  const columns = Math.min(size.columns, frames);
  const rows = Math.min(size.rows, bins);
  const loudest = data.reduce((most, value) => Math.max(most, value), 0);
  const lines: string[] = [];
  for (let row = rows - 1; row >= 0; row--) {
    let line = "";
    for (let column = 0; column < columns; column++) {
      const level = loudestIn(mel, part(column, columns, frames), part(row, rows, bins));
      line += shadeOf(level, loudest);
    }
    lines.push(line);
  }
  return lines.join("\n");
}

/** The run of `length` items in the `index`th of `parts`. */
function part(index: number, parts: number, length: number): { start: number; stop: number } {
  const at = (i: number) => Math.floor(i * length / parts);
  return { start: at(index), stop: at(index + 1) };
}

function loudestIn(
  { data, shape }: Tensor,
  frames: { start: number; stop: number },
  bins: { start: number; stop: number },
): number {
  let most = 0;
  for (let frame = frames.start; frame < frames.stop; frame++) {
    for (let bin = bins.start; bin < bins.stop; bin++) {
      most = Math.max(most, data[frame * shape[1]! + bin] as number);
    }
  }
  return most;
}

function shadeOf(level: number, loudest: number): string {
  const decibels = level > 0 ? 20 * Math.log10(level / loudest) : -Infinity;
  const loudness = Math.max(0, 1 + decibels / RANGE_DECIBELS);
  return SHADES[Math.min(Math.floor(loudness * SHADES.length), SHADES.length - 1)]!;
}
