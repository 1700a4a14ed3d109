/** Runs functions that the trainer did not build, in one process per iteration and without permissions. */
import { fieldsOf } from "../../../core/tree.ts";
import { LeatError } from "../../../core/error.ts";
import type {
  ForeignPart,
  ForeignRunner,
  OpenInput,
  RemoteElements,
  ServedElements,
} from "../../../data/foreign/foreign_runners.ts";
import { GrantedPython } from "../../python/granted_python.ts";
import { askedElements } from "./asked_elements.ts";
import { ConfinedProcess } from "../confined_process.ts";
import { FetchedModules } from "../modules/fetched_modules.ts";
import type { PartRequest } from "./foreign_parts.ts";
import type { ForeignLimits } from "./foreign_processes.ts";
import { sandboxGrants } from "../grants.ts";
import { HostProcesses } from "../host/host_processes.ts";
import { ElementServer } from "./element_server.ts";
import { isCount } from "../../../core/count.ts";
import { unexpected } from "../untrusted_answers.ts";

/** What error messages suggest to the author of the training program when a limit is exceeded. */
const REMEDIES = {
  memory: "installHost(new DenoHost({ foreign: { heapBytesMax, memoryBytesMax } })) allows more",
  stall: "installHost(new DenoHost({ foreign: { stallTimeoutMs } })) allows more",
};

/** The process of one iteration. It starts when the first part is opened. */
export class ProcessRunner implements ForeignRunner {
  readonly #limits: ForeignLimits;
  readonly #inputs = new ElementServer();
  readonly #openers = new Map<number, OpenInput<ServedElements>>();
  #parts = 0;
  #started: Promise<ConfinedProcess> | undefined;
  #process: ConfinedProcess | undefined;
  #hosts: HostProcesses | undefined;
  #isClosed = false;

  constructor(limits: ForeignLimits) {
    this.#limits = limits;
  }

  async open(part: ForeignPart, openInput: OpenInput<ServedElements>): Promise<RemoteElements> {
    const process = await (this.#started ??= this.#start());
    const number = ++this.#parts;
    this.#openers.set(number, openInput);
    const request: PartRequest = { number, part };
    const opened = await process.ask("partOpen", request);
    if (!isCount(opened)) throw unexpected("the number of a part");
    return askedElements(
      (method, args) => process.ask(method, args),
      opened,
      () => this.#openers.delete(number),
    );
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    this.#inputs.dispose();
    await Promise.all([this.#process?.terminate(), this.#hosts?.close()]);
  }

  async #start(): Promise<ConfinedProcess> {
    const grants = sandboxGrants({ ...this.#limits, dataRoots: [] });
    // While a request of this program is open, the process of the functions keeps it alive.
    this.#hosts = new HostProcesses(grants, {}, { keepsProgram: false });
    this.#process = new ConfinedProcess({
      grants,
      hosts: this.#hosts,
      modules: new FetchedModules([]),
      python: new GrantedPython([], grants.stallTimeoutMs),
      storageLatencyMs: 0,
      onGuarded: () => {},
      onEnded: () => {},
      remedies: REMEDIES,
      keepsProgram: false,
      methods: { ...this.#inputs.methods(), inputOpen: (request) => this.#openInput(request) },
    });
    if (this.#isClosed) this.close();
    await this.#process.loaded;
    return this.#process;
  }

  /** The request is untrusted. */
  #openInput(request: unknown): number {
    const { part, input, epoch } = fieldsOf(request);
    const openInput = this.#openers.get(part as number);
    if (openInput === undefined || !isCount(input) || !isCount(epoch)) {
      throw new LeatError("invalid_argument", "The request for an input is malformed");
    }
    return this.#inputs.open(() => openInput(input, epoch));
  }
}
