/** Pipelines with functions of `functions.py`. */
import { Dataset, python } from "@leat/leat";

const FILE = import.meta.resolve("./functions.py");

const of = (name: string) => python(FILE, name);

export const augmented = Dataset.range(400)
  .map((x) => ({ x }))
  .batch(4)
  .map(of("augment"), { captures: { scale: 2 } });

/** The element of `everything`, through Python and back. */
export const everything = async () => {
  const { everything } = await import("./pipelines.ts");
  return everything.map(of("same"));
};

export const text = Dataset.range(2).map(of("text"));

export const labels = Dataset.range(3).map(of("label")).batch(3);

export const beyond = Dataset.range(2).map(of("beyond")).batch(2);

/** At 7 an element that no message can have. */
export const dated = Dataset.range(20)
  .map((x) => x === 7 ? { x, when: new Date(0) } : { x })
  .map(of("same"));

interface Called {
  readonly name: string;
  readonly file?: string;
  readonly count?: number;
}

export const numbers = ({ name, file = FILE, count = 20 }: Called) =>
  Dataset.range(count).map(python(file, name));

/** Pairs of what the same function says in two folders. */
export const folders = ({ files }: { files: [string, string] }) =>
  Dataset.zip(files.map((file) => Dataset.range(40).map(python(file, "where"))) as [
    Dataset<string>,
    Dataset<string>,
  ]);

/** Runs on a thread. */
export const threaded = Dataset.range(8).map(of("same")).batch(4).prefetch(2, { thread: true });

export const odd = Dataset.range(20).filter(of("is_odd"));

export const missing = Dataset.range(2).map(python("/no/such/file.py", "augment"));
