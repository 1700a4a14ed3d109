/** The cases that are compared. In each, Leat and its peers run one pipeline on the same files. */

/** The other libraries, in the order of tables and plots. */
export const PEERS = ["tensorflow", "torch", "grain", "spdl"] as const;

/** One of the other libraries. */
export type Peer = typeof PEERS[number];

/** The groups of cases, for `--only` and the sections of the page. */
export const PARTS = {
  overhead: "Small pipelines: what the framework itself costs",
  images: "Images from TFRecords",
  text: "Text: split, hash, bucket by length, pad",
  records: "Reading TFRecords",
  service: "The service: one worker process, one client process, TCP over loopback",
  host: "The service: a client process on the worker's host, which may use more than TCP",
  coordinated: "Coordinated reads: synchronous training on texts of uneven length",
  checkpoints: "Saving an iterator's position",
  python: "PyTorch reads: batches in a Python program",
} as const;

/** One group of cases. */
export type Part = keyof typeof PARTS;

/** One pipeline. `pipeline` is its name on each side. */
export interface PeerCase {
  /** A unique name for `--only` and `--list`. */
  readonly name: string;
  readonly part: Part;
  /** The name of the function that runs the pipeline on a side. */
  readonly pipeline: string;
  /** What a rate counts, per second. */
  readonly unit: string;
  /** `"one"`: all processes of the case run on one core. */
  readonly cores: "one" | "all";
  /** The peers that can run the pipeline. */
  readonly peers: readonly Peer[];
  /** The goal for Leat's rate ÷ the peer's: at least this. */
  readonly goals?: Partial<Record<Peer, number>>;
  /** Whether Leat's side is a program in Python, too. */
  readonly isInPython?: boolean;
  /** What all sides must agree on: the shape of an image, or its pixels, too. */
  readonly agreement?: "shape" | "pixels";
}

function overhead(name: string, peers: readonly Peer[]): PeerCase {
  return { name, part: "overhead", pipeline: name, unit: "elements/s", cores: "all", peers };
}

function images(name: string, peers: readonly Peer[]): PeerCase[] {
  return (["one", "all"] as const).map((cores): PeerCase => ({
    ...{ name: `${name}-${cores}-core${cores === "one" ? "" : "s"}`, part: "images" as const },
    ...{ pipeline: name, unit: "images/s", cores, peers },
    // The pipelines are the same on one core.
    ...(cores === "one" ? {} : { agreement: name.startsWith("random") ? "shape" : "pixels" }),
    goals: { tensorflow: cores === "one" ? 1.3 : 1.5, torch: 2, spdl: 2 },
  }));
}

function service(part: "service" | "host", what: string, goal?: number): PeerCase {
  const name = `${part}-${what}`;
  const unit = what === "splits" ? "splits/s" : "batches/s";
  return {
    ...{ name, part, pipeline: name, unit, cores: "all", peers: ["tensorflow"] },
    ...(goal === undefined ? {} : { goals: { tensorflow: goal } }),
  };
}

function coordinated(name: string, unit: string): PeerCase {
  return { name, part: "coordinated", pipeline: name, unit, cores: "all", peers: ["tensorflow"] };
}

function inPython(what: string, unit: string, peers: readonly Peer[]): PeerCase {
  const name = `python-${what}`;
  return { name, part: "python", pipeline: name, unit, cores: "all", peers, isInPython: true };
}

/** All cases. */
export const CASES: readonly PeerCase[] = [
  overhead("range-batch", ["tensorflow", "grain"]),
  overhead("range-map-batch", ["tensorflow", "torch", "grain"]),
  overhead("range-map-filter-batch", ["tensorflow", "grain"]),
  overhead("shuffle-batch", ["tensorflow", "torch"]),
  overhead("flat-map-batch", ["tensorflow"]),
  overhead("zip-batch", ["tensorflow"]),
  overhead("padded-batch", ["tensorflow"]),
  overhead("map-prefetch", ["tensorflow", "grain"]),
  ...["decode", "resize-crop", "random-resized-crop"].flatMap((name) =>
    images(name, ["tensorflow", "torch", "spdl"])
  ),
  {
    ...{ name: "text-bucket-pad", part: "text", pipeline: "text-bucket-pad", unit: "texts/s" },
    ...{ cores: "all", peers: ["tensorflow", "torch"], goals: { tensorflow: 5 } },
  },
  ...(["records-large", "records-small", "records-shuffle"] as const).map((name): PeerCase => ({
    ...{ name, part: "records", pipeline: name, unit: "records/s", cores: "all" },
    ...{ peers: ["tensorflow"], goals: { tensorflow: 1.5 } },
  })),
  service("service", "1kb", 4),
  service("service", "150kb", 2),
  service("service", "1mb", 1.2),
  service("service", "10mb", 1.2),
  service("service", "1mb-compressed"),
  service("service", "splits", 5),
  ...["1kb", "150kb", "1mb", "10mb"].map((size) => service("host", size, 4)),
  ...["padded-4", "coordinated-4", "padded-16", "coordinated-16"].map((name) =>
    coordinated(name, "tokens/s")
  ),
  coordinated("coordinated-rounds", "rounds/s"),
  {
    ...{ name: "checkpoint-shuffle", part: "checkpoints", pipeline: "checkpoint-shuffle" },
    ...{ unit: "saves/s", cores: "all", peers: ["tensorflow"] },
  },
  { ...inPython("images", "images/s", ["tensorflow", "torch", "grain"]), agreement: "pixels" },
  inPython("text", "texts/s", ["tensorflow", "torch", "grain"]),
  inPython("numbers", "numbers/s", ["tensorflow", "torch", "grain"]),
  inPython("10mb", "batches/s", ["torch", "grain"]),
  inPython("small", "batches/s", ["torch", "grain"]),
];
