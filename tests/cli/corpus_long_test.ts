/** The corpus: its contents, its reproducibility, its reuse, and its repair after damage. */

import { basename, dirname, join } from "node:path";
import { PassThrough } from "node:stream";
import { LeatError } from "../../core/error.ts";
import { Tensor } from "../../core/tensor.ts";
import { describeImages, describeText, prepareCorpus } from "../../cli/simulate/corpus.ts";
import { openCorpus } from "../../cli/simulate/corpus_folder.ts";
import {
  generateImages,
  measureDecodeMs,
  packImages,
  sampleImages,
} from "../../cli/simulate/image_corpus.ts";
import { Progress } from "../../cli/simulate/progress.ts";
import {
  generateText,
  packText,
  tokenize,
  TOKENS_MAX,
  VOCABULARY_SIZE,
} from "../../cli/simulate/text_corpus.ts";
import { Dataset } from "../../mod.ts";
import { Images } from "../../platform/media/images.ts";
import {
  assert,
  assertEquals,
  assertNotEquals,
  assertRejects,
  assertStringIncludes,
} from "../assert.ts";
import { inFolder } from "../lib/temp_folder.ts";

async function contentsOf(files: string[]): Promise<Map<string, Uint8Array>> {
  const contents = await Promise.all(files.map((file) => Deno.readFile(file)));
  return new Map(files.map((file, index) => [basename(file), contents[index]!]));
}

async function writeJpeg(path: string, width: number, height: number): Promise<Uint8Array> {
  const pixels = new Uint8Array(width * height * 3).fill(90);
  const jpeg = await new Images().encode(new Tensor("uint8", [height, width, 3], pixels));
  await Deno.writeFile(path, jpeg);
  return jpeg;
}

Deno.test("generateImages has ImageNet's spread of sizes, in TFRecords that the engine reads", () =>
  inFolder(async (directory) => {
    const { files, statistics } = await generateImages({ directory, count: 96 });
    const { count, bytesMean, widthMean, heightMean } = statistics;
    assertEquals(count, 96);
    assert(bytesMean > 90_000 && bytesMean < 130_000, `${bytesMean} bytes on average`);
    assert(Math.abs(widthMean * heightMean / (500 * 375) - 1) < 0.2, `${widthMean}×${heightMean}`);

    const images = new Images();
    const bytes: number[] = [];
    const sizes = new Map<string, number>();
    for await (const jpeg of Dataset.tfRecords(files)) {
      const { width, height } = images.size(jpeg);
      bytes.push(jpeg.length);
      sizes.set(`${width}×${height}`, (sizes.get(`${width}×${height}`) ?? 0) + 1);
    }
    assertEquals(bytes.length, 96);
    assertEquals([...sizes].sort((a, b) => b[1] - a[1])[0]?.[0], "500×375");
    assert((sizes.get("375×500") ?? 0) > 0, "some stand upright");
    assert(sizes.size > 8, "sizes are spread");
    bytes.sort((a, b) => a - b);
    assert(bytes[86]! > 1.8 * bytes[9]!, "some are flat and some are full of detail");
  }));

Deno.test("generateImages makes pictures that are neither flat nor noise", () =>
  inFolder(async (directory) => {
    const corpus = await generateImages({ directory, count: 8 });
    const images = new Images();
    for (const jpeg of await sampleImages(corpus, 8)) {
      const { shape, data } = await images.decode(jpeg);
      const [height = 0, width = 0] = shape;
      let total = 0;
      let near = 0;
      let far = 0;
      const mean = data.reduce((sum, level) => sum + level, 0) / data.length;
      for (let at = 0; at < data.length; at += 3) {
        const y = Math.floor(at / 3 / width);
        const x = at / 3 % width;
        if (x + 40 >= width || y + 40 >= height) continue;
        const here = data[at]! - mean;
        total += here * here;
        near += here * (data[at + 3]! - mean);
        far += here * (data[at + 3 * 40]! - mean);
      }
      // Neighbours are similar and distant pixels less so: 1 and 1 for a flat picture, 0 and 0 for
      // noise.
      assert(total > 0);
      assert(near / total > 0.7, `neighbours correlate by ${near / total}`);
      assert(far < near * 0.95, `40 pixels apart they correlate by ${far / total}`);
    }
  }));

Deno.test("generateImages gives the same bytes for a seed and others for another", () =>
  inFolder(async (folder) => {
    const make = async (name: string, seed: number) =>
      await contentsOf(
        (await generateImages({ directory: join(folder, name), count: 3, seed })).files,
      );
    const first = await make("first", 1);
    assertEquals(await make("second", 1), first);
    assertNotEquals(await make("third", 2), first);
  }));

Deno.test("generateImages reuses a complete corpus", () =>
  inFolder(async (directory) => {
    const first = await generateImages({ directory, count: 2 });
    const modified = (await Deno.stat(first.files[0]!)).mtime?.getTime();
    const second = await generateImages({
      directory,
      count: 2,
      onProgress: () => assert(false, "nothing is made anew"),
    });
    assertEquals([first.reused, second.reused], [false, true]);
    assertEquals({ ...second, reused: false }, first);
    assertEquals((await Deno.stat(first.files[0]!)).mtime?.getTime(), modified);
  }));

Deno.test("generateImages generates again for other parameters, and keeps the first corpus", () =>
  inFolder(async (directory) => {
    await generateImages({ directory, count: 2 });
    assertEquals((await generateImages({ directory, count: 3 })).reused, false);
    assertEquals((await generateImages({ directory, count: 2 })).reused, true);
  }));

const DAMAGES: Record<string, (file: string) => Promise<void>> = {
  "a file cut short": (file) => Deno.truncate(file, 100),
  "a file of the right size with another byte": async (file) => {
    const bytes = await Deno.readFile(file);
    bytes[bytes.length >> 1]! ^= 1;
    await Deno.writeFile(file, bytes);
  },
  "a missing file": (file) => Deno.remove(file),
  "a missing manifest": (file) => Deno.remove(join(dirname(file), "manifest.json")),
  "half a manifest": (file) => Deno.truncate(join(dirname(file), "manifest.json"), 40),
  "a manifest that is something else": (file) =>
    Deno.writeTextFile(join(dirname(file), "manifest.json"), "null"),
};

for (const [damage, inflict] of Object.entries(DAMAGES)) {
  Deno.test(`openCorpus regenerates a corpus after ${damage}`, () =>
    inFolder(async (directory) => {
      const first = await generateText({ directory, count: 20 });
      const contents = await contentsOf(first.files);
      await inflict(first.files[0]!);
      const second = await generateText({ directory, count: 20 });
      assertEquals(second.reused, false);
      assertEquals(second.files, first.files);
      assertEquals(await contentsOf(second.files), contents);
    }));
}

Deno.test("openCorpus leaves nothing behind when the writer fails, and the cache unchanged", () =>
  inFolder(async (directory) => {
    const parameters = { kind: "test", release: 1 };
    const failing = openCorpus(directory, parameters, async (folder) => {
      await folder.create("a").write(new Uint8Array(2_000_000));
      throw new Error("the disk is full");
    });
    await assertRejects(() => failing, Error, "the disk is full");
    assertEquals([...Deno.readDirSync(directory)], []);
  }));

Deno.test("openCorpus removes old unfinished folders, and nothing else of a user's folder", () =>
  inFolder(async (directory) => {
    const folders = ["work.tmp", "kept-0123456789ab.12.0123abcd.tmp.d"];
    const abandoned = "generated-text-0123456789ab.12.0123abcd.tmp";
    for (const folder of [...folders, abandoned]) await Deno.mkdir(join(directory, folder));
    const files = ["thesis.tmp", "x-0123456789ab.12.0123abcd.tmp"];
    for (const file of files) await Deno.writeTextFile(join(directory, file), "mine");
    for (const name of [...folders, ...files, abandoned]) {
      await Deno.utime(join(directory, name), 1, 1);
    }
    const { files: [made] } = await openCorpus(
      directory,
      { kind: "test", release: 1 },
      (folder) => {
        folder.create("a");
      },
    );
    const left = [...Deno.readDirSync(directory)].map(({ name }) => name);
    assertEquals(left.sort(), [...folders, ...files, basename(dirname(made!))].sort());
  }));

Deno.test("openCorpus passes over an unfinished folder that others finish while it looks", () =>
  inFolder(async (directory) => {
    const kinds = Array.from({ length: 40 }, (_, index) => `kind${index}`);
    await Promise.all(kinds.map((kind) =>
      openCorpus(directory, { kind, release: 1 }, (folder) => {
        folder.create("a");
      })
    ));
    assertEquals([...Deno.readDirSync(directory)].length, kinds.length);
  }));

Deno.test("openCorpus lets two writers of one corpus finish, with one result", () =>
  inFolder(async (directory) => {
    const both = await Promise.all([
      generateText({ directory, count: 50 }),
      generateText({ directory, count: 50 }),
    ]);
    assertEquals(both[0].files, both[1].files);
    assertEquals((await generateText({ directory, count: 50 })).reused, true);
    assertEquals([...Deno.readDirSync(directory)].length, 1);
  }));

Deno.test("generateText is log-normal in length, and its tokens are of the vocabulary", () =>
  inFolder(async (directory) => {
    const { files, statistics } = await generateText({ directory, count: 4_000 });
    assertEquals(statistics.count, 4_000);
    assert(statistics.lengthMedian > 54 && statistics.lengthMedian < 66);
    assert(statistics.lengthMean > 85 && statistics.lengthMean < 107);
    assertEquals(statistics.lengthMax, TOKENS_MAX);
    assert(statistics.lengthMin >= 1 && statistics.lengthMin < 8);

    const logarithms: number[] = [];
    const frequencies = new Map<number, number>();
    for await (
      const { tokens } of Dataset.jsonLines(files) as AsyncIterable<{ tokens: number[] }>
    ) {
      logarithms.push(Math.log(tokens.length));
      for (const token of tokens) {
        assert(Number.isInteger(token) && token >= 0 && token < VOCABULARY_SIZE);
        frequencies.set(token, (frequencies.get(token) ?? 0) + 1);
      }
    }
    const mean = logarithms.reduce((sum, value) => sum + value, 0) / logarithms.length;
    const variance = logarithms.reduce((sum, value) => sum + (value - mean) ** 2, 0) /
      logarithms.length;
    // A little below 1, since lengths are cut at TOKENS_MAX.
    assert(Math.sqrt(variance) > 0.85 && Math.sqrt(variance) < 1.05, `sigma ${variance ** 0.5}`);
    assert(frequencies.get(1)! > 5 * frequencies.get(20)!, "few tokens are frequent");
  }));

Deno.test("packImages packs the folders' images in order and names invalid ones", () =>
  inFolder(async (folder) => {
    const source = join(folder, "source");
    await Deno.mkdir(join(source, "class"), { recursive: true });
    const cat = await writeJpeg(join(source, "class", "cat.JPEG"), 40, 30);
    const dog = await writeJpeg(join(source, "dog.jpg"), 20, 50);
    await Deno.writeFile(join(source, "cut.jpg"), dog.subarray(0, dog.length - 40));
    await Deno.writeTextFile(join(source, "text.jpg"), "no image");
    await Deno.writeTextFile(join(source, "notes.txt"), "not looked at");
    // `Deno.symlink` needs permission for the whole disk.
    await new Deno.Command("sh", { args: ["-c", 'ln -s nowhere "$0"', join(source, "link.jpg")] })
      .output();

    const corpus = await packImages({ directory: join(folder, "cache"), source });
    assertEquals(corpus.statistics.count, 2);
    assertEquals(corpus.statistics.widthMean, 30);
    assertEquals(corpus.statistics.heightMean, 40);
    assertEquals(corpus.skipped.map(({ path }) => path), ["cut.jpg", "link.jpg", "text.jpg"]);
    assertStringIncludes(corpus.skipped[1]?.reason ?? "", "No such file");
    assertStringIncludes(corpus.skipped[2]?.reason ?? "", "Not a JPEG");
    assertStringIncludes(describeImages(corpus, 1), "3 more could not be decoded");
    const records: Uint8Array[] = [];
    for await (const record of Dataset.tfRecords(corpus.files)) records.push(record);
    assertEquals(records, [cat, dog]);
    assertEquals(await sampleImages(corpus, 10), [cat, dog]);
  }));

Deno.test("packImages packs again only when an image has changed", () =>
  inFolder(async (folder) => {
    const source = join(folder, "source");
    const directory = join(folder, "cache");
    await Deno.mkdir(source);
    await writeJpeg(join(source, "a.jpg"), 16, 16);
    await packImages({ directory, source });
    const again = await packImages({ directory, source });
    assertEquals([again.reused, again.statistics.widthMean], [true, 16]);
    await writeJpeg(join(source, "a.jpg"), 32, 16);
    const changed = await packImages({ directory, source });
    assertEquals([changed.reused, changed.statistics.widthMean], [false, 32]);
  }));

Deno.test("packImages explains what is wrong with a folder without images", () =>
  inFolder(async (folder) => {
    const directory = join(folder, "cache");
    const missing = await assertRejects(
      () => packImages({ directory, source: join(folder, "nowhere") }),
      LeatError,
      "nowhere",
    );
    assertEquals((missing as LeatError).code, "not_found");
    await Deno.mkdir(join(folder, "empty"));
    await assertRejects(
      () => packImages({ directory, source: join(folder, "empty") }),
      LeatError,
      "holds no .jpg or .jpeg file",
    );
    await Deno.writeTextFile(join(folder, "empty", "a.jpg"), "no image");
    await assertRejects(
      () => packImages({ directory, source: join(folder, "empty") }),
      LeatError,
      "none of its 1 JPEG files can be decoded; a.jpg: Not a JPEG",
    );
  }));

Deno.test("packText makes a sample of each line that is not blank", () =>
  inFolder(async (folder) => {
    const source = join(folder, "text.txt");
    await Deno.writeTextFile(source, `one two one\r\n\n  \nthree\n${"word ".repeat(600)}`);
    const { files, statistics } = await packText({ directory: join(folder, "cache"), source });
    assertEquals(statistics, {
      count: 3,
      lengthMean: (3 + 1 + TOKENS_MAX) / 3,
      lengthMedian: 3,
      lengthMin: 1,
      lengthMax: TOKENS_MAX,
    });
    const samples: number[][] = [];
    for await (
      const { tokens } of Dataset.jsonLines(files) as AsyncIterable<{ tokens: number[] }>
    ) {
      samples.push(tokens);
    }
    assertEquals(samples[0], tokenize("one two one"));
    assertEquals(samples[0]?.[0], samples[0]?.[2]);
    assertNotEquals(samples[0]?.[0], samples[0]?.[1]);
  }));

Deno.test("packText explains what is wrong with a file without text", () =>
  inFolder(async (folder) => {
    const source = join(folder, "text.txt");
    const directory = join(folder, "cache");
    const missing = await assertRejects(
      () => packText({ directory, source }),
      LeatError,
      "Cannot read the text",
    );
    assertEquals((missing as LeatError).code, "not_found");
    await Deno.writeTextFile(source, " \n\n");
    await assertRejects(
      () => packText({ directory, source }),
      LeatError,
      "every line of it is blank",
    );
  }));

Deno.test("generateImages and generateText refuse an invalid count", async () => {
  for (const count of [0, -1, 1.5, Number.NaN]) {
    for (const generate of [generateImages, generateText]) {
      await assertRejects(
        () => generate({ directory: "/tmp/unused", count }),
        LeatError,
        `count is ${count}`,
      );
    }
  }
});

Deno.test("measureDecodeMs decodes what it is given", () =>
  inFolder(async (directory) => {
    const corpus = await generateImages({ directory, count: 2 });
    const jpegs = await sampleImages(corpus, 1);
    assertEquals(jpegs.length, 1);
    assert(await measureDecodeMs(jpegs) > 0);
    await assertRejects(() => measureDecodeMs([new Uint8Array(8)]), LeatError, "Not a JPEG");
  }));

Deno.test("prepareCorpus uses the user's own data and describes it", () =>
  inFolder(async (folder) => {
    const images = join(folder, "images");
    await Deno.mkdir(images);
    await writeJpeg(join(images, "a.jpg"), 64, 48);
    const text = join(folder, "text.txt");
    await Deno.writeTextFile(text, "to be or not to be");
    using progress = new Progress({ experiments: 1, stream: new PassThrough().resume() });
    const corpus = await prepareCorpus({
      directory: join(folder, "cache"),
      images,
      text,
      progress,
    });
    assertStringIncludes(corpus.description[0] ?? "", "1 image of");
    assertStringIncludes(corpus.description[0] ?? "", "64×48 pixels");
    assertStringIncludes(corpus.description[0] ?? "", "ImageNet's: 1.0 ms");
    assertEquals(describeText(corpus.text), corpus.description[1]);
    assertStringIncludes(corpus.description[1] ?? "", "1 text of 6 to 6 tokens");
  }));
