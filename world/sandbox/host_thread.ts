/**
 * The program of a thread that serves confined ones. It runs nothing of a user.
 *
 * @module
 */
import * as comlink from "comlink";
import { DenoHost } from "../deno_host.ts";
import { workerFiles, type WorkerStorage } from "../storage.ts";
import { Edge } from "./edge.ts";
import { HostService } from "./host_service.ts";

/** What the thread can be told, by the thread that started it alone. */
export class HostThreadControl {
  #edge: Edge | undefined;
  #service: HostService | undefined;

  /**
   * Serves a confined thread through a port, until it is released.
   *
   * @param far The beginnings of URLs that it may read.
   */
  serve(port: MessagePort, far: readonly string[], storage: WorkerStorage): void {
    this.#service = new HostService(new DenoHost({ files: workerFiles(storage) }), far);
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
