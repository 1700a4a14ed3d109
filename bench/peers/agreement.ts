/** Checks that the sides of a case with images return the same image. */
import { mean } from "../../cli/lib/statistics.ts";
import { Dataset, encodeTfRecord } from "../../mod.ts";
import type { PeerCase } from "./cases.ts";
import { LEAT } from "./measure.ts";
import { type Sample, Side, type SideCommand } from "./side.ts";

/**
 * The limit of the mean difference of pixels, as a share of the standard deviation of Leat's image. A
 * shift of two pixels is beyond it; decoders and interpolations differ by half of it.
 */
const DIFFERENCE_MAX = 0.25;

/** Writes the first record of `paths` to a file of its own, as not all sides keep the order. */
export async function writeFirstRecord(paths: readonly string[], path: string): Promise<void> {
  for await (const record of Dataset.tfRecords([...paths]).take(1)) {
    await Deno.writeFile(path, encodeTfRecord(record));
  }
}

/** Returns, by side, how its image differs from Leat's. `commands` read a file with one image. */
export async function disagreements(
  { agreement }: PeerCase,
  commands: ReadonlyMap<string, SideCommand>,
): Promise<Record<string, string>> {
  if (agreement === undefined) return {};
  const found: Record<string, string> = {};
  const samples = new Map<string, Sample>();
  await Promise.all(
    commands.entries().map(async ([name, command]) => {
      try {
        await using side = new Side(command);
        samples.set(name, await side.sample());
      } catch (error) {
        found[name] = error instanceof Error ? error.message : String(error);
      }
    }),
  );
  const leat = samples.get(LEAT);
  for (const [name, sample] of leat === undefined ? [] : samples) {
    const difference = differenceOf(leat!, sample, agreement);
    if (difference !== undefined) found[name] = difference;
  }
  return found;
}

/** Describes how an image, or its mirror image, differs from Leat's. */
export function differenceOf(
  leat: Sample,
  { shape, values }: Sample,
  agreement: "shape" | "pixels",
): string | undefined {
  if (`${shape}` !== `${leat.shape}`) {
    return `its image has the shape [${shape}], Leat's [${leat.shape}]`;
  }
  if (agreement === "shape") return undefined;
  const [, width = 0, channels = 0] = shape;
  const mirrored = values.map((_, index) => {
    const column = Math.floor(index / channels) % width;
    return values[index + channels * (width - 1 - 2 * column)]!;
  });
  const difference =
    Math.min(meanDifference(leat.values, values), meanDifference(leat.values, mirrored)) /
    deviationOf(leat.values);
  if (difference <= DIFFERENCE_MAX) return undefined;
  return `its pixels differ from Leat's by ${difference.toFixed(2)} standard deviations; ` +
    `at most ${DIFFERENCE_MAX}`;
}

function meanDifference(a: readonly number[], b: readonly number[]): number {
  return mean(a.map((value, index) => Math.abs(value - b[index]!)));
}

function deviationOf(values: readonly number[]): number {
  const average = mean(values);
  return Math.sqrt(mean(values.map((value) => (value - average) ** 2)));
}
