/** The layers of the project: what each may import, and which names and packages are restricted. */

/** The layers. A file belongs to the first layer that contains it, so nested layers come first. */
export const LAYERS = [
  "actors/runtime",
  "actors/exactly_once",
  "actors/dispatcher",
  "actors/worker",
  "actors/cache",
  "actors/coordinated",
  "actors/client",
  "bench/bare",
  "core",
  "data",
  "offload",
  "transport",
  "platform",
  "server",
  "sim/checkers",
  "sim",
  "cli/lib",
  "cli",
  "examples",
  "bench",
  "tests",
  "tools",
  "mod.ts",
] as const;

const SERVICE = ["actors/exactly_once", "actors/runtime", "transport", "data", "core"];

const PRODUCTION = [...LAYERS.filter((layer) => !isWorkshop(layer) && layer !== "mod.ts")];

/** The layers that each layer may import besides itself. A layer that is absent may import everything. */
export const ARROWS: Readonly<Record<string, readonly string[]>> = {
  core: [],
  data: ["core"],
  "actors/runtime": ["core"],
  transport: ["actors/runtime", "core"],
  "actors/exactly_once": ["actors/runtime", "transport", "core"],
  "actors/dispatcher": SERVICE,
  "actors/worker": SERVICE,
  "actors/cache": SERVICE,
  "actors/coordinated": SERVICE,
  "actors/client": SERVICE,
  offload: ["actors/client", "transport", "data", "core"],
  platform: PRODUCTION.filter((layer) => layer !== "server"),
  server: PRODUCTION,
  "mod.ts": PRODUCTION,
  // Checkers run in the simulator and with real processes.
  "sim/checkers": PRODUCTION,
  // The user interface of programs: arguments, tables, pages.
  "cli/lib": ["core"],
  sim: [...PRODUCTION, "mod.ts", "cli/lib", "sim/checkers"],
  cli: [...PRODUCTION, "mod.ts", "cli/lib", "sim", "sim/checkers"],
  examples: [...PRODUCTION, "mod.ts", "cli/lib", "cli"],
  bench: [...PRODUCTION, "sim", "mod.ts", "bench/bare", "cli/lib", "cli"],
  "bench/bare": [],
};

/** Files with messages of service actors, which other service actors may import. */
export const PROTOCOL_FILE = /^actors\/[a-z]+\/protocol(_[a-z_]+)?\.ts$/;

/** Packages that only some layers may import, so that each can be replaced in one place. */
export const PACKAGES: readonly [name: string, allowed: RegExp, remedy: string][] = [
  ["msgpackr", /^(transport\/codec|tests\/|bench\/)/, "use transport/codec.ts"],
  [
    "comlink",
    /^(transport|platform|server|tests|bench)\//,
    "use the edge in transport/ or platform/",
  ],
  [
    "valibot",
    /^(actors\/(runtime\/(checks|guard)|[a-z]+\/protocol_check)\.ts$|tests\/)/,
    "use actors/runtime/checks.ts",
  ],
  ...["backend-cpu", "core", "layers"].map((part): [string, RegExp, string] => [
    `@tensorflow/tfjs-${part}`,
    /^examples\//,
    "train in examples/; Leat feeds any library",
  ]),
  ["node:assert", /^tests\/assert\.ts$/, "use tests/assert.ts"],
  ["node:tls", /^(transport|tests)\//, "use the carriers of transport/"],
];

/** Layers that get everything nondeterministic from the platform or the host. */
export const PURE_LAYERS = /^(core|data|actors|offload|transport)\/|^mod\.ts$/;

export const AMBIENT_GLOBALS: ReadonlySet<string> = new Set([
  "Deno",
  "EventSource",
  "WebSocket",
  "Worker",
  "clearInterval",
  "clearTimeout",
  "console",
  "fetch",
  "localStorage",
  "performance",
  "process",
  "setImmediate",
  "setInterval",
  "setTimeout",
]);

/** Where some ambient globals are allowed nevertheless. */
export const AMBIENT_EXCEPTIONS: Readonly<Record<string, RegExp>> = {
  // Carriers are made of sockets and threads.
  Deno: /^transport\//,
  Worker: /^transport\//,
  // Loads modules that only compute.
  process: /^core\/builtins\.ts$/,
};

/** Ambient members of globals whose other members are harmless. */
export const AMBIENT_MEMBERS: Readonly<Record<string, readonly string[]>> = {
  crypto: ["getRandomValues", "randomUUID"],
  Date: ["now"],
  Math: ["random"],
  Temporal: ["Now"],
};

/** All built-in modules but those that only compute, and `node:tls`, which has a row in PACKAGES. */
export const AMBIENT_MODULES = /^node:(?!(buffer|stream|tls|zlib)$)/;

function isWorkshop(layer: string): boolean {
  return /^(sim|cli|examples|bench|tests|tools)(\/|$)/.test(layer);
}
