/**
 * The small programs of `examples/` that users copy. The goal: each runs with the command that it names, leaves nothing behind, and
 * shows what it is there to show. The method: each is a process of its own, and the line of its output that decides is read.
 */
import { assert, assertEquals, assertMatch } from "../assert.ts";
import { startChild } from "../lib/child.ts";
import { namesIn, TempFolder } from "../lib/temp_folder.ts";

const ROOT = new URL("../../", import.meta.url);
const LINES_MAX = 80;

/** What an example's output has to be, by its name. */
const EXAMPLES: Readonly<Record<string, (out: string, err: string) => void>> = {
  images_from_tfrecords(out) {
    assertEquals(out.match(/^image uint8 \[16,24,24,3\], label int64 \[16\]$/gm)?.length, 8);
    assertMatch(out, /^128 images, of each class 32, 32, 32, 32$/m);
  },
  text_buckets(out) {
    const [padded, bucketed, packed] = numbersIn(out, /, (\S+) % padding$/gm);
    assert(padded! > 2 * bucketed! && bucketed! > 2 * packed!, out);
    assertEquals(new Set(numbersIn(out, /, (\d+) tokens,/g)).size, 1, out);
  },
  train(out) {
    const losses = numbersIn(out, /: loss (\S+),/g);
    assertEquals(losses.length, 12);
    assert(losses.at(-1)! < 0.8 * losses[0]!, out);
  },
  checkpoint_resume(out) {
    assertMatch(out, /^first run: stopped after 13 steps/m);
    assertMatch(out, /^second run: 19 steps more/m);
    assertMatch(out, /^the two runs together are the uninterrupted one: true$/m);
  },
  two_processes(out) {
    assertMatch(out, /^the sum of 10000 squares is 333283335000$/m);
    assertMatch(out, /^with another token: unauthenticated$/m);
  },
  shared_trainers(out) {
    const [, read, produced] = out.match(/^(\d+) batches read, (\d+) produced$/m)!;
    assertEquals(read, "600");
    assert(Number(produced) < 600, out);
  },
  coordinated_reads(out) {
    assertMatch(out, /^12 of 12 steps had batches of one length$/m);
    assert(new Set(numbersIn(out, /,(\d+)\] and/g)).size > 1, out);
  },
  data_parallel(out) {
    assertMatch(out, /^worker 0 has crashed$/m);
    assertMatch(out, /^4000 elements, 4000 different ones$/m);
  },
  custom_format(out, err) {
    assertMatch(out, /^chur: 22 °C$/m);
    assertMatch(out, /^3000 measurements$/m);
    assertMatch(err, /damaged\.wthr is no file of measurements/);
  },
  sharding_policy(out) {
    assertMatch(out, /^lines by worker: 600 and 300; 900 different ones$/m);
  },
  prepared_dataset(out) {
    assertMatch(out, /^epoch 1, while it was written: 2000 rows$/m);
    assertMatch(out, /^epoch 3, from disk: 2000 rows$/m);
  },
  offload(out) {
    assertMatch(out, /^(Workers run p'\d for \d+ % of the data|Nothing is offloaded)/m);
    assertMatch(out, /^local \(Lthp, Pcycle\) +\S+ .B\/s +\S+ ms/m);
    assertMatch(out, /^80 steps, 320 different elements$/m);
    const [here, there] = numbersIn(out, /(?:here|worker): (\d+)/g);
    assert([80, 320].includes(here! + there!), out);
  },
  plan_pipeline(out) {
    const waits = numbersIn(out, /accelerators wait (\d+) %$/gm);
    assert(waits.length > 0 && waits.at(-1)! <= waits[0]!, out);
    assertMatch(out, /^recommended number of workers: \d+/m);
  },
};

for (const [name, check] of Object.entries(EXAMPLES)) {
  Deno.test(`examples/${name}.ts runs by the command that it names, and leaves nothing behind`, async () => {
    const program = `examples/${name}.ts`;
    const source = await Deno.readTextFile(new URL(program, ROOT));
    const flags = source.match(/^ \* {5}deno run (-P.*) (examples\/\w+\.ts)$/m);
    assertEquals(flags?.[2], program);
    await using temporary = await TempFolder.make();
    await using child = startChild(program, {
      flags: flags![1]!.split(" "),
      env: { TMPDIR: temporary.path },
    });
    const { code } = await child.status;
    const { stdout: { text: out }, stderr: { text: err } } = child;
    assertEquals(code, 0, out + err);
    check(out, err);
    assertEquals(await namesIn(temporary.path), []);
  });
}

/** What `deno.json` exports, as examples import it. */
const EXPORTED = ["../mod.ts", "../cli/leat.ts"];

Deno.test("examples are short, import only what is exported, and are listed in README.md", async () => {
  const readme = await Deno.readTextFile(new URL("README.md", ROOT));
  for (const name of Object.keys(EXAMPLES)) {
    const path = `examples/${name}.ts`;
    const source = await Deno.readTextFile(new URL(path, ROOT));
    const lines = source.split("\n").length - 1;
    assert(lines >= 20 && lines <= LINES_MAX, `${path} has ${lines} lines`);
    const relative = [...source.matchAll(/ from "(\..*)"/g)].map(([, from]) => from);
    assertEquals(relative.filter((from) => !EXPORTED.includes(from!)), [], path);
    assert(readme.includes(`(${path})`), `README.md does not name ${path}`);
  }
});

function numbersIn(text: string, pattern: RegExp): number[] {
  return [...text.matchAll(pattern)].map(([, number]) => Number(number));
}
