/**
 * The program of a thread that serves confined ones. It runs nothing of a user.
 *
 * @module
 */
import * as comlink from "comlink";
import { DenoHost } from "../deno_host.ts";
import { workerFiles, type WorkerStorage } from "../storage.ts";
import { Edge } from "./edge.ts";
import type { ReachedByHost } from "./grants.ts";
import { HostReadings } from "./host_readings.ts";
import { HostService } from "./host_service.ts";

/** What the thread can be told, by the thread that started it alone. */
export class HostThreadControl {
  #edge: Edge | undefined;
  #service: HostService | undefined;

  /**
   * Serves a confined thread through a port, until it is released.
   *
   * @param granted What it may reach through this thread.
   */
  serve(port: MessagePort, { far, net }: ReachedByHost, storage: WorkerStorage): void {
    const host = new DenoHost({ files: workerFiles(storage) });
    this.#service = new HostService(host, far, new HostReadings(net, storage.services));
    this.#edge = new Edge(port, this.#service.methods());
  }

  release(): void {
    this.#edge?.close();
    this.#service?.dispose();
    this.#edge = undefined;
    this.#service = undefined;
  }
}

comlink.expose(new HostThreadControl());
