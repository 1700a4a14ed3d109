/**
 * The manifests of deploy/kubernetes against the programs that they start: no cluster is needed to see
 * that a flag, a port, a path or a metric is not there.
 */

import { fileURLToPath } from "node:url";
// @deno-types="npm:@types/js-yaml@4.0.9"
import { loadAll } from "js-yaml";
import { Dataset, METRICS, serveDispatcher } from "../../mod.ts";
import { assert, assertEquals, assertMatch } from "../assert.ts";
import { type Child, startChild } from "../lib/child.ts";
import { numbersOf, sorted, upTo } from "../service/lib/carriers.ts";
import { TempFolder } from "../lib/temp_folder.ts";

const DEPLOY = fileURLToPath(new URL("../../deploy/", import.meta.url));
const ROOT = fileURLToPath(new URL("../../", import.meta.url));
const FOLDERS = ["base", "keda", "prometheus-adapter"];

// deno-lint-ignore no-explicit-any -- manifests have the shapes that Kubernetes gives them
type Manifest = any;

function documentsOf(path: string): Manifest[] {
  return loadAll(Deno.readTextFileSync(path), null, { filename: path });
}

/** Everything that a folder's kustomization names. */
function manifestsOf(folder: string): Manifest[] {
  const path = `${DEPLOY}kubernetes/${folder}/`;
  const [{ resources }] = documentsOf(`${path}kustomization.yaml`);
  return resources.filter((name: string) => name.endsWith(".yaml"))
    .flatMap((name: string) => documentsOf(path + name));
}

/** The paths of all files below a folder of the tree. */
function filesBelow(folder: string): string[] {
  return [...Deno.readDirSync(`${ROOT}${folder}`)].flatMap(({ name, isDirectory }) => {
    const path = `${folder}/${name}`;
    return isDirectory ? filesBelow(path) : [path];
  });
}

const BASE = manifestsOf("base");
const find = (kind: string, name: string, all = BASE): Manifest =>
  all.find((one) => one.kind === kind && one.metadata.name === name);
const SETTINGS: Record<string, string> = find("ConfigMap", "leat").data;
const podOf = (name: string): Manifest => find("StatefulSet", name).spec.template.spec;
const containerOf = (name: string): Manifest => podOf(name).containers[0];
const PODS = ["leat-dispatcher", "leat-worker"];

/** What a flag of a container is given. */
function argOf(name: string, flag: string): string {
  const given = (containerOf(name).args as string[]).find((arg) => arg.startsWith(`--${flag}=`));
  return given!.slice(flag.length + 3);
}

Deno.test("every file in the kustomizations exists, and is YAML", () => {
  for (const folder of FOLDERS) {
    for (const { apiVersion, kind, metadata } of manifestsOf(folder)) {
      assertEquals([typeof apiVersion, typeof kind, typeof metadata.name], [
        "string",
        "string",
        "string",
      ]);
    }
  }
  documentsOf(`${DEPLOY}kubernetes/prometheus-adapter/adapter_values.yaml`);
});

Deno.test("the containers run existing tasks, with flags that those accept", async () => {
  const { tasks } = JSON.parse(Deno.readTextFileSync(`${ROOT}deno.json`));
  for (const name of PODS) {
    const [task, ...args]: string[] = containerOf(name).args;
    const [program] = /cli\/\w+\.ts/.exec(tasks[task!].command)!;
    await using child = startChild(program, { args: ["--help"] });
    await child.status;
    for (const arg of args) {
      const [flag] = arg.split("=");
      assertMatch(child.stdout.text, new RegExp(`^ +${flag}\\b`, "m"), `${task} has no ${flag}`);
    }
  }
});

Deno.test("everything that the arguments refer to is set", () => {
  for (const name of PODS) {
    const { args, env } = containerOf(name);
    const known = [...Object.keys(SETTINGS), ...env.map((one: Manifest) => one.name)];
    for (const arg of args as string[]) {
      for (const [, variable] of arg.matchAll(/\$\((\w+)\)/g)) {
        assertEquals(known.includes(variable!), true, `${variable} in ${arg}`);
      }
    }
  }
});

Deno.test("ports, names and addresses of services, containers and arguments agree", () => {
  for (const name of PODS) {
    const {
      ports: [{ name: portName, containerPort }],
      startupProbe,
      readinessProbe,
      livenessProbe,
    } = containerOf(name);
    const service = find("Service", name);
    assertEquals(service.spec.ports, [{
      name: portName,
      port: containerPort,
      targetPort: portName,
    }]);
    assertEquals(argOf(name, "port"), `${containerPort}`);
    assertEquals(argOf(name, "advertise").split(":")[1], `${containerPort}`);
    for (const probe of [startupProbe, readinessProbe, livenessProbe]) {
      assertEquals((probe.httpGet ?? probe.tcpSocket).port, portName);
    }
    const { selector, serviceName, template } = find("StatefulSet", name).spec;
    assertEquals(serviceName, name);
    assertEquals(template.metadata.labels, selector.matchLabels);
    assertEquals(service.spec.selector, selector.matchLabels);
  }
  assertEquals(`ws://${argOf("leat-dispatcher", "advertise")}`, argOf("leat-worker", "dispatcher"));
  assertMatch(argOf("leat-worker", "advertise"), /^\$\(POD\)\.leat-worker\./);
});

Deno.test("workers have longer to end than they drain, and names that last until then", () => {
  const { terminationGracePeriodSeconds } = podOf("leat-worker");
  const drainMs = Number(argOf("leat-worker", "drain-ms"));
  assertEquals(1_000 * terminationGracePeriodSeconds > drainMs + 2_000, true);
  const { clusterIP, publishNotReadyAddresses } = find("Service", "leat-worker").spec;
  assertEquals([clusterIP, publishNotReadyAddresses], ["None", true]);
});

Deno.test("there are never fewer workers than share jobs of static policies", () => {
  const listed = SETTINGS["STATIC_WORKERS"]!.split(",");
  assertEquals(listed, listed.map((_, index) => `leat-worker-${index}`));
  const least = Number(SETTINGS["MIN_WORKERS"]);
  const most = Number(SETTINGS["MAX_WORKERS"]);
  const { minReplicaCount, maxReplicaCount } =
    find("ScaledObject", "leat-worker", manifestsOf("keda")).spec;
  const hpa =
    find("HorizontalPodAutoscaler", "leat-worker", manifestsOf("prometheus-adapter")).spec;
  assertEquals([minReplicaCount, maxReplicaCount], [least, most]);
  assertEquals([hpa.minReplicas, hpa.maxReplicas], [least, most]);
  assertEquals(least >= listed.length, true);
  assertEquals(find("StatefulSet", "leat-worker").spec.replicas >= listed.length, true);
});

Deno.test("no step of the page puts a secret on a command line, which other users can see", async () => {
  const page = await Deno.readTextFile(`${DEPLOY}kubernetes/README.md`);
  const steps = [...page.matchAll(/^```sh\n(.*?)^```/gms)].map(([, step]) => step).join("");
  assertMatch(steps, /deno task status --token-file/);
  assertEquals(steps.match(/--token[ =].*|--from-literal.*/g), null);
});

Deno.test("probes are answered without a token, and what is scaled on is a number", async () => {
  await using dispatcher = await serveDispatcher({ token: "sesame", logLevel: "off" });
  const { startupProbe, readinessProbe, livenessProbe } = containerOf("leat-dispatcher");
  for (const { httpGet } of [startupProbe, readinessProbe, livenessProbe]) {
    const response = await fetch(new URL(httpGet.path, dispatcher.page));
    assertEquals([response.status, await response.text()], [200, "ok\n"]);
  }
  const bearer = { headers: { authorization: "Bearer sesame" } };
  const [{ metadata }] = find("ScaledObject", "leat-worker", manifestsOf("keda")).spec.triggers;
  const { pathname } = new URL(metadata.url);
  const state = await (await fetch(new URL(pathname, dispatcher.page), bearer)).json();
  const value = metadata.valueLocation.split(".").reduce(
    (at: Manifest, key: string) => at[key],
    state,
  );
  assertEquals(typeof value, "number");

  const adapter = manifestsOf("prometheus-adapter");
  const { path } = find("ServiceMonitor", "leat-dispatcher", adapter).spec.endpoints[0];
  const scraped = await (await fetch(new URL(path, dispatcher.page), bearer)).text();
  const { name } =
    find("HorizontalPodAutoscaler", "leat-worker", adapter).spec.metrics[0].external.metric;
  assertMatch(scraped, new RegExp(`^${name} \\d+$`, "m"));
  assertEquals(name, METRICS.cluster.wantedWorkers[1]);
  const [rule] =
    documentsOf(`${DEPLOY}kubernetes/prometheus-adapter/adapter_values.yaml`)[0].rules.external;
  assertEquals(rule.seriesQuery, name);
});

Deno.test("the image has one version of Deno, and its user is that of the manifests", () => {
  const image = Deno.readTextFileSync(`${DEPLOY}Containerfile`);
  assertMatch(image, /^FROM docker\.io\/denoland\/deno:\d+\.\d+\.\d+$/m);
  for (const name of PODS) {
    const { runAsUser, runAsGroup } = podOf(name).securityContext;
    assertMatch(image, new RegExp(`^USER ${runAsUser}:${runAsGroup}$`, "m"));
  }
});

Deno.test("the image compiles the programs of all threads", () => {
  const image = Deno.readTextFileSync(`${DEPLOY}Containerfile`);
  const [, list = ""] = /deno cache ([^&]*)/.exec(image) ?? [];
  const listed = list.split(/[\s\\]+/).filter((word) => word !== "");
  for (const path of listed) assert(Deno.statSync(`${ROOT}${path}`).isFile, path);
  const entries = filesBelow("platform").filter((path) => path.endsWith("_entry.ts"));
  assert(entries.length > 1);
  assertEquals(entries.filter((path) => !listed.includes(path)), []);
});

Deno.test("the tasks, started as in the manifests, are a cluster, and SIGTERM ends them gracefully", async () => {
  await using temporary = await TempFolder.make();
  const folder = temporary.path;
  await Deno.writeTextFile(`${folder}/token`, "sesame\n");
  await using dispatcher = startTask("leat-dispatcher", {
    port: "0",
    advertise: "127.0.0.1",
    "token-file": `${folder}/token`,
    journal: folder,
  });
  const [, address] = await dispatcher.line(/listening on (\S+)/);
  await using worker = startTask("leat-worker", {
    dispatcher: address!,
    port: "0",
    advertise: "127.0.0.1",
    "token-file": `${folder}/token`,
    // A worker refuses a data root that its token lies in.
    "data-root": await Deno.makeTempDir({ dir: folder }),
  }, { POD: "leat-worker-0" });
  const numbers = await numbersOf(
    Dataset.range(100).batch(10).distribute({
      service: address!,
      token: "sesame",
      processingMode: "FILE_OR_DATA",
    }),
  );
  assertEquals(sorted(numbers), upTo(100));
  for (const child of [worker, dispatcher]) {
    child.kill("SIGTERM");
    assertEquals((await child.status).code, 0);
    assertMatch(child.stdout.text, /Stopping \(SIGTERM\)/);
  }
});

/** The program of a container, with some of its arguments as they have to be here. */
function startTask(
  name: string,
  here: Readonly<Record<string, string>>,
  variables: Readonly<Record<string, string>> = {},
): Child {
  const [task, ...args]: string[] = containerOf(name).args;
  const known: Record<string, string> = { ...SETTINGS, ...variables };
  return startChild(task!, {
    command: "task",
    args: args.map((arg) => {
      const flag = arg.slice(2, arg.indexOf("="));
      if (flag in here) return `--${flag}=${here[flag]}`;
      return arg.replaceAll(/\$\((\w+)\)/g, (_, variable) => known[variable]!);
    }),
  });
}
