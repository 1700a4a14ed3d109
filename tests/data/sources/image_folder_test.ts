/** `imageFolder` over real folders: labels, classes, formats, decoding, splits, and images that cannot be decoded. */

import {
  assert,
  assertEquals,
  assertNotEquals,
  assertRejects,
  assertStringIncludes,
  assertThrows,
} from "../../assert.ts";
import { LeatError } from "../../../core/error.ts";
import { Tensor } from "../../../core/tensor.ts";
import { Dataset, imageClasses, LocalCluster, TensorSpec } from "../../../mod.ts";
import { ListedHost } from "../../../data/deterministic/listed_host.ts";
import type { ImageDecodeOptions } from "../../../data/host.ts";
import { ImageFolderNode } from "../../../data/sources/image_folder.ts";
import { listSplitTable } from "../../../data/sharding/splits.ts";
import { deserializeGraph, serializeGraph } from "../../../data/wire.ts";
import { DenoHost } from "../../../platform/deno_host.ts";
import { Images } from "../../../platform/media/images.ts";
import { assertCheckpointLaw } from "../lib/checkpoint_law.ts";
import { GREY, RGB, writePng } from "../../platform/media/png_writer.ts";
import { type Files, withFiles } from "../../lib/temp_folder.ts";
import { collect, splitsOf } from "./running.ts";
import { imageTest } from "../../lib/image_test.ts";

/** An image of which every pixel is `level`. */
const png = (level: number, width = 3, height = 2) =>
  writePng({ width, height, depth: 8, colour: GREY, at: () => level });
const jpeg = await new Images().encode(new Tensor("uint8", [2, 3, 3], new Uint8Array(18).fill(99)));
/** One pixel, written by libwebp. */
const webp = Uint8Array.fromBase64("UklGRhwAAABXRUJQVlA4TA8AAAAvAAAAAAcQ/Y/+ByKi/wEA");

/** Images in folders, and files that do not count. */
const IMAGES = {
  "[b]/1.png": png(10),
  "[b]/deep/er/2.PNG": png(10),
  "a b/3.jpeg": jpeg,
  "a/4.png": png(0),
  "a/readme.txt": "no image",
  "empty/readme.txt": "no image",
  "outside.png": png(77),
};

/** Runs `fn` with a folder whose name is full of pattern characters. */
async function withTree(files: Files, fn: (root: string) => Promise<void>): Promise<void> {
  const name = "im{a,b}ges (1) [x]*";
  const inside = Object.entries(files).map(([path, contents]) => [`${name}/${path}`, contents]);
  await withFiles(Object.fromEntries(inside), (folder) => fn(`${folder}/${name}`));
}

/** Label and first byte of each image; errors as their codes. */
const outline = (found: unknown[]) =>
  found.map((one) => {
    if (one instanceof LeatError) return one.code;
    const { image, label } = one as { image: Tensor | Uint8Array; label: number };
    return [label, image instanceof Tensor ? image.data[0] : image[0]];
  });

imageTest("imageFolder labels images by the folder of their class, at any depth", async () => {
  await withTree(IMAGES, async (root) => {
    const inOrder = { shuffle: false };
    const found = await collect(new ImageFolderNode(root, inOrder));
    // Sorted by name: by path, "a b/" would precede "a/".
    assertEquals(await imageClasses(root), ["[b]", "a", "a b"]);
    assertEquals(outline(found), [[0, 10], [0, 10], [2, 99], [1, 0]]);
    assertEquals((found[0] as { image: Tensor }).image.shape, [2, 3, 3]);
    assertEquals(outline(await collect(new ImageFolderNode(`${root}//`, inOrder))), outline(found));
    const classNames = ["a b", "[b]"];
    assertEquals(
      outline(await collect(new ImageFolderNode(root, { ...inOrder, classNames }))),
      [[1, 10], [1, 10], [0, 99]],
    );
  });
});

Deno.test("imageFolder labels images below a file: URL, however it is written", async () => {
  await withTree(IMAGES, async (root) => {
    const path = root.replace(/[[\]{},*]/g, encodeURIComponent);
    for (const url of [`file://${root}`, `file:${root}`, `file://localhost${path}`]) {
      assertEquals(await imageClasses(url), ["%5Bb%5D", "a", "a%20b"]);
      const found = await collect(new ImageFolderNode(url, { shuffle: false, decode: false }));
      assertEquals(found.map((one) => (one as { label: number }).label), [0, 0, 2, 1]);
    }
  });
});

Deno.test("imageFolder reads images whatever the case of their extension", async () => {
  const names = ["1.jpg", "2.JPG", "3.Jpg", "4.jPeG", "5.Png", "6.webP"];
  const files = Object.fromEntries(names.map((name, i) => [`a/${name}`, `${i}`]));
  await withTree({ ...files, "a/7.Jpgs": "no image" }, async (root) => {
    const node = new ImageFolderNode(root, { shuffle: false, decode: false, path: true });
    const paths = (await collect(node)).map((found) => (found as { path: string }).path);
    assertEquals(paths, names.map((name) => `${root}/a/${name}`));
  });
});

imageTest("imageFolder shuffles by default, differently in every epoch", async () => {
  const files = Object.fromEntries(Array.from({ length: 20 }, (_, i) => [`a/${i}.png`, png(i)]));
  await withTree(files, async (root) => {
    const node = new ImageFolderNode(root, { seed: 3 });
    const first = outline(await collect(node));
    assertEquals(outline(await collect(node)), first);
    assertNotEquals(outline(await collect(node, { epoch: 1 })), first);
    assertEquals(first.length, 20);
  });
});

imageTest("imageFolder decodes by its options, or not at all", async () => {
  const files = { "a/1.jpg": jpeg, "a/2.png": png(7), "a/3.webp": webp };
  await withTree(files, async (root) => {
    const decode = { resize: { width: 4, height: 5 }, channels: 1 } as const;
    const resized = Dataset.imageFolder(root, { shuffle: false, decode });
    assertEquals(resized.elementSpec, {
      image: new TensorSpec("uint8", [5, 4, 1]),
      label: new TensorSpec("int32", []),
    });
    const [batch] = await Array.fromAsync(resized.batch(3));
    assertEquals(batch!.image.shape, [3, 5, 4, 1]);
    assertEquals([batch!.label.dtype, batch!.label.toArray()], ["int32", [0, 0, 0]]);
    const none: ImageDecodeOptions = JSON.parse('{ "crop": null, "resize": null, "flip": null }');
    const whole = Dataset.imageFolder(root, { shuffle: false, decode: none });
    const unset = Dataset.imageFolder(root, { shuffle: false });
    assertEquals(whole.elementSpec, unset.elementSpec);
    assertEquals(await Array.fromAsync(whole), await Array.fromAsync(unset));
    const bytes = Dataset.imageFolder(root, { shuffle: false, decode: false });
    assertEquals(bytes.elementSpec, {
      image: new TensorSpec("bytes", []),
      label: new TensorSpec("int32", []),
    });
    assertEquals((await Array.fromAsync(bytes)).map(({ image }) => image), [jpeg, png(7), webp]);
  });
});

imageTest("an image that cannot be decoded is lost, and named", async () => {
  const files = {
    "a/1.png": png(1).slice(0, 40),
    "a/2.png": "<html>",
    "a/3.png": new Uint8Array(0),
    "a/4.png": png(4),
  };
  await withTree(files, async (root) => {
    const found = await collect(new ImageFolderNode(root, { shuffle: false }));
    assertEquals(outline(found), ["data_loss", "invalid_argument", "data_loss", [0, 4]]);
    assertStringIncludes(
      (found[0] as LeatError).message,
      `${root}/a/1.png: Damaged PNG of 40 bytes`,
    );
    assertStringIncludes((found[1] as LeatError).message, "begin with 3c68746d");
  });
});

imageTest("imageFolder lists its classes again after a failure", async () => {
  await withTree({ "a/1.png": png(1), "b/2.png": png(2), "b/3.png": png(3) }, async (root) => {
    const { files } = new DenoHost();
    let lists = 0;
    const list = (pattern: string) => {
      // The first listing is of the images, the second of their classes.
      if (++lists !== 2) return files.list(pattern);
      return Promise.reject(new LeatError("unavailable", "the store is away"));
    };
    const host = new DenoHost({ files: { open: (path) => files.open(path), list } });
    const node = new ImageFolderNode(root, { shuffle: false });
    assertEquals(outline(await collect(node, { host })), ["unavailable"]);
    assertEquals(outline(await collect(node, { host })), [[0, 1], [1, 2], [1, 3]]);
    assertEquals(lists, 4); // the images once more, and nothing else
  });
});

Deno.test("imageFolder keeps its labels in a later epoch whose splits list the files again", async () => {
  await withTree({ "b/1.png": png(1) }, async (root) => {
    const node = new ImageFolderNode(root, { shuffle: false, decode: false });
    const host = new DenoHost();
    await collect(node, { host: new ListedHost(host) });
    await Deno.mkdir(`${root}/a`);
    await Deno.writeFile(`${root}/a/2.png`, png(2));
    const found = await collect(node, { host: new ListedHost(host) });
    assertStringIncludes((found[0] as LeatError).message, 'the class "a" did not exist');
    assertEquals((found[1] as { label: number }).label, 0);
  });
});

imageTest(
  "imageFolder keeps its labels in splits, parallel reads, checkpoints and serialisation",
  async () => {
    await withTree(IMAGES, async (root) => {
      const options = { shuffle: false, decode: { flip: true } };
      const node = new ImageFolderNode(root, options);
      const [files] = await listSplitTable(node, new DenoHost());
      const [first, , third] = files!;
      const splits = splitsOf([third!.start, third!.stop], [first!.start, first!.stop]);
      assertEquals(outline(await collect(node, { splits })), [[2, 99], [0, 10]]);
      const copy = deserializeGraph(serializeGraph(node), { isOwn: true });
      assertEquals(copy.attributes, node.attributes);
      assertEquals(await collect(copy), await collect(node));
      const inTurn = new ImageFolderNode(root, { ...options, numParallelReads: 2 });
      assertEquals(outline(await collect(inTurn)), [[0, 10], [0, 10], [2, 99], [1, 0]]);
      await assertCheckpointLaw(() => Dataset.imageFolder(root, { seed: 5 }));
    });
  },
);

imageTest(
  "imageFolder fails with not_found that names the folder of a class without images",
  async () => {
    await withTree(IMAGES, async (root) => {
      for (const missing of ["dogs", "empty"]) {
        const node = new ImageFolderNode(root, { classNames: ["a", missing], shuffle: false });
        const copy = deserializeGraph(serializeGraph(node), { isOwn: true });
        for (const one of [node, copy]) {
          const found = await collect(one);
          assertEquals(outline(found), ["not_found"]);
          assertStringIncludes((found[0] as LeatError).message, `/${missing}/**`);
          assertStringIncludes((found[0] as LeatError).message, "ges (1)");
        }
        await assertRejects(() => listSplitTable(node, new DenoHost()), LeatError, `/${missing}/`);
      }
    });
  },
);

imageTest("imageFolder with path gives the path of each file, decoded or not", async () => {
  await withTree({ "a/1.png": png(1), "b/2.jpg": jpeg }, async (root) => {
    const paths = [`${root}/a/1.png`, `${root}/b/2.jpg`];
    const options = { shuffle: false, path: true } as const;
    const decoded = Dataset.imageFolder(root, options);
    assertEquals(decoded.elementSpec, {
      image: new TensorSpec("uint8", [null, null, 3]),
      label: new TensorSpec("int32", []),
      path: new TensorSpec("string", []),
    });
    assertEquals((await Array.fromAsync(decoded)).map(({ path }) => path), paths);
    const { node } = Dataset.imageFolder(root, { ...options, decode: false });
    const copy = deserializeGraph(serializeGraph(node), { isOwn: true });
    assertEquals((await collect(copy)).map((one) => (one as { path: string }).path), paths);
    const [without] = await Array.fromAsync(Dataset.imageFolder(root, { shuffle: false }));
    assertEquals(Object.keys(without!), ["image", "label"]);
  });
});

imageTest("imageFolder runs on the workers of a service", async () => {
  await withTree(IMAGES, async (root) => {
    await using cluster = await LocalCluster.start({ workers: 2, runners: "inline" });
    const images = Dataset.imageFolder(root).distribute({
      service: cluster,
      processingMode: "DYNAMIC",
    });
    const found = outline(await Array.fromAsync(images)) as number[][];
    assertEquals(found.sort((a, b) => a[0]! - b[0]!), [[0, 10], [0, 10], [1, 0], [2, 99]]);
  });
});

imageTest(
  "imageFolder and imageClasses name missing folders, and arguments they refuse",
  async () => {
    await withTree({ "outside.png": png(1) }, async (root) => {
      const error = await assertRejects(() => imageClasses(root), LeatError) as LeatError;
      assertEquals(error.code, "not_found");
      const [first, ...rest] = await collect(new ImageFolderNode(root));
      assertEquals([(first as LeatError).code, rest], ["not_found", []]);
    });
    const cases: [unknown, object, string][] = [
      ["", {}, "root must be the path of a folder"],
      [["a"], {}, "root must be the path of a folder"],
      ["x", { classNames: [] }, "classNames must be an array of names of folders"],
      ["x", { classNames: ["a/b"] }, "classNames must be an array of names of folders"],
      ["x", { classNames: ["a", "a"] }, `classNames has "a" twice`],
      [
        "x",
        { decode: true },
        "decode must be false or { crop, resize, flip, channels, dtype, normalize, layout, dctMethod }",
      ],
      [
        "x",
        { decode: { size: 3 } },
        "decode must be false or { crop, resize, flip, channels, dtype, normalize, layout, dctMethod }",
      ],
      ["x", { decode: { resize: { width: 3 } } }, "decode.resize.height must be an integer"],
      ["x", { decode: { channels: 2 } }, "decode.channels must be 1, 3 or 4"],
      ["x", { shuffle: "yes" }, "shuffle must be a boolean"],
      ["x", { path: "yes" }, "path must be a boolean"],
    ];
    for (const [root, options, message] of cases) {
      const error = assertThrows(() => new ImageFolderNode(root, options), LeatError) as LeatError;
      assertEquals(error.code, "invalid_argument");
      assertStringIncludes(error.message, message);
    }
  },
);

imageTest("an RGB image keeps its colours", async () => {
  const at = (x: number, y: number, channel: number) => x + 10 * y + 100 * channel;
  const image = writePng({ width: 2, height: 2, depth: 8, colour: RGB, at });
  await withTree({ "a/1.png": image }, async (root) => {
    const [found] = await Array.fromAsync(Dataset.imageFolder(root));
    assertEquals([...found!.image.data], [0, 100, 200, 1, 101, 201, 10, 110, 210, 11, 111, 211]);
  });
});

Deno.test("ImageFolderNode leaves out the slashes at the end of its root, however many others there are", () => {
  const many = "/".repeat(4_000_000);
  const roots = [["a//", "a"], ["/", "/"], [many, "/"], [`/a${many}`, "/a"], [
    `${many}x`,
    `${many}x`,
  ]];
  for (const [root, kept] of roots) {
    assert(new ImageFolderNode(root).root === kept, root!.slice(0, 40));
  }
});
