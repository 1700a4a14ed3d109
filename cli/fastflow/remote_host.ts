/** Runs a service on a simulated remote host: a network namespace behind a cable. */
import { Cable } from "./cable.ts";
import { RemoteService, type RemoteServiceOptions } from "./remote_service.ts";

const TRAINER = "10.97.0.1";
const HOST = "10.97.0.2";
const PORT = 5_050;

/** The cable to the host, and its service. */
export interface RemoteHostOptions extends Omit<RemoteServiceOptions, "host" | "namespace"> {
  /** Speed of the cable in each direction. Default: as fast as this machine copies. */
  readonly bytesPerSecond?: number;
}

/** A dispatcher and workers on the host. Disposing it ends them and removes the host. */
export class RemoteHost implements AsyncDisposable {
  readonly address = `ws://${HOST}:${PORT}`;
  readonly #cable: Cable;
  readonly #service: RemoteService;

  private constructor(cable: Cable, service: RemoteService) {
    this.#cable = cable;
    this.#service = service;
  }

  /** Returns why this machine cannot simulate a host; undefined if it can. */
  static async whyNot(): Promise<string | undefined> {
    try {
      await using _ = await Cable.start({ here: TRAINER, there: HOST, bytesPerSecond: 1_000_000 });
      return undefined;
    } catch (error) {
      return (error as Error).message;
    }
  }

  static async start({ bytesPerSecond, ...options }: RemoteHostOptions): Promise<RemoteHost> {
    const cable = await Cable.start({ here: TRAINER, there: HOST, bytesPerSecond });
    try {
      const { namespace } = cable;
      const location = { host: HOST, port: PORT, namespace };
      return new RemoteHost(cable, await RemoteService.start({ ...options, ...location }));
    } catch (error) {
      await cable[Symbol.asyncDispose]();
      throw error;
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#service[Symbol.asyncDispose]();
    await this.#cable[Symbol.asyncDispose]();
  }
}
