/** The script of the live page: fetches the state each second, and shows it. */
"use strict";
const POLL_MS = 1000;
/** Time limit of a request, in ms: a paused dispatcher takes connections, and never answers. */
const ANSWER_TIMEOUT_MS = 15_000;
const HISTORY_MAX = 180;
// A form's query has `+` for a space. No token has a space, and people copy tokens as they are.
const token = new URLSearchParams(location.search).get("token")?.replaceAll(" ", "+");
const history_ = [];
const columns = "PAGE_COLUMNS";

/** An element; text is always text, never markup. */
function h(tag, options, ...children) {
  const { style, ...attributes } = options ?? {};
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
  for (const [name, value] of Object.entries(style ?? {})) {
    element.style.setProperty(name, value);
  }
  element.append(...children.flat().filter((child) => child !== null));
  return element;
}

const round = (value, digits) => value.toLocaleString("en", { maximumFractionDigits: digits });
function number(value) {
  if (value === null || value === undefined) return "–";
  return round(value, value < 10 ? 2 : value < 100 ? 1 : 0);
}
function bytes(value) {
  if (value === null || value === undefined) return "–";
  const units = ["B", "kB", "MB", "GB", "TB"];
  let unit = 0;
  while (value >= 1000 && unit < units.length - 1) {
    value /= 1000;
    unit++;
  }
  return `${number(value)} ${units[unit]}`;
}
function duration(hours) {
  if (hours < 1 / 60) return `${number(3600 * hours)} s`;
  return hours < 1 ? `${number(60 * hours)} min` : `${number(hours)} h`;
}
const dollars = (value) => value < 0.01 ? value.toPrecision(2) : value.toFixed(2);
const percent = (share) => `${Math.round(100 * share)}\u00a0%`;
const counted = (count, noun) => `${count.toLocaleString("en")} ${noun}${count === 1 ? "" : "s"}`;
const sum = (items, of) => items.reduce((total, item) => total + of(item), 0);

function bar(share, tone = "") {
  const fill = h("i", { style: { "--share": String(Math.min(1, share)) } });
  return h("div", { class: `bar ${tone}` }, h("i", null, fill), h("span", null, percent(share)));
}

function table(headings, rows) {
  const heading = ([text, kind]) => h("th", { class: kind ?? "" }, text);
  const row = (cells) =>
    h("tr", null, cells.map((cell, i) => h("td", { class: headings[i][1] ?? "" }, cell)));
  return h(
    "div",
    { class: "scroll" },
    h(
      "table",
      null,
      h("thead", null, h("tr", null, headings.map(heading))),
      h("tbody", null, rows.map(row)),
    ),
  );
}

const headingsOf = (group) =>
  columns[group].map(({ heading, unit }, i) =>
    i === 0 && unit === "share" ? [heading] : [heading, "number"]
  );

/** A row's cells for the figures of a group. The first cell is drawn as a bar if it is a share. */
function cellsOf(group, figures, { tone, mark = "" } = {}) {
  return columns[group].map(({ key, unit }, i) => {
    const value = figures?.[key];
    if (value === null || value === undefined) return "–";
    if (unit !== "share") return shown(value, unit) + mark;
    return i === 0 ? bar(value, tone?.(value)) : percent(value);
  });
}

function shown(value, unit) {
  if (unit === "bytes" || unit === "bytes/s") return bytes(value);
  if (unit === "ms" || unit === "cores") return `${number(value)} ${unit}`;
  return unit.endsWith("/s") ? number(value) : value.toLocaleString("en");
}

const TONES = {
  trainers_wait: "warn",
  workers_wait: "",
  balanced: "good",
  stuck: "bad",
  unknown: "",
};
const STATE_TONES = { working: "good", idle: "", starting: "warn", silent: "bad", gone: "bad" };

const isActive = (iteration) =>
  iteration.clients > 0 && !iteration.finished && iteration.failure === undefined;

function verdicts({ jobs, workers, scaling, journal }) {
  const found = (isMeant) =>
    jobs.flatMap((job) => job.iterations.filter(isMeant).map((iteration) => ({ job, iteration })));
  const active = found(isActive);
  const failed = found(({ failure }) => failure !== undefined);
  const unreachable = workers.filter(({ alive, unreachable }) => alive && unreachable);
  const cards = [...failed, ...active].map(({ job, iteration: { bottleneck } }) =>
    h(
      "div",
      { class: `card verdict ${TONES[bottleneck.kind] ?? ""}` },
      bottleneck.text,
      h("small", null, job.name),
    )
  );
  if (journal !== undefined) {
    const text = `The dispatcher waits: ${journal.waits}`;
    const seconds = Math.round(journal.forMs / 1000);
    const since = h("small", null, `It has answered nothing and assigned nothing for ${seconds} s`);
    cards.push(h("div", { class: "card verdict bad" }, text, since));
  }
  if (active.length === 0) {
    const alive = workers.filter((worker) => worker.alive).length;
    const text = workers.length === 0
      ? "No workers yet: start one with deno task worker."
      : `No job has a client. ${counted(alive, "worker")} ${alive === 1 ? "is" : "are"} ready.`;
    cards.push(h("div", { class: "card verdict" }, text));
  }
  if (active.length > 0) {
    const text = h("small", null, "How many workers there should be");
    cards.push(h("div", { class: "card verdict" }, scaling.text, text));
  }
  if (unreachable.length > 0) {
    const names = unreachable.map(({ name }) => name).join(", ");
    cards.push(
      h(
        "div",
        { class: "card verdict bad" },
        `${counted(unreachable.length, "worker")} cannot be reached: ${names}.`,
        h("small", null, "The table of workers says what to do."),
      ),
    );
  }
  return cards;
}

function tile(value, unit, label) {
  const figure = h("b", null, value, " ", h("small", null, unit));
  return h("div", { class: "card tile" }, figure, h("span", { class: "muted" }, label));
}

function totals({ workers, jobs }) {
  const clients = jobs.flatMap((job) => job.iterations.flatMap(({ readers }) => readers));
  const figures = clients.flatMap((client) => client.figures ?? []);
  const shares = figures.flatMap(({ waitingShare }) => waitingShare ?? []);
  return {
    alive: workers.filter((worker) => worker.alive).length,
    working: workers.filter(({ activity }) => activity.state === "working").length,
    clients: clients.length,
    elements: sum(figures, (one) => one.elementsPerSecond),
    bytes: sum(figures, (one) => one.bytesPerSecond),
    waiting: shares.length === 0 ? null : sum(shares, (share) => share) / shares.length,
  };
}

function tiles(state) {
  const { alive, working, clients, elements, bytes: taken, waiting } = totals(state);
  const [amount, unit] = bytes(taken).split(" ");
  return h(
    "div",
    { class: "tiles" },
    tile(String(working), `of ${alive}`, "workers at work"),
    tile(String(clients), "", clients === 1 ? "client" : "clients"),
    tile(number(elements), "/s", "elements to trainers"),
    tile(amount, `${unit}/s`, "data to trainers"),
    tile(
      waiting === null ? "–" : String(Math.round(100 * waiting)),
      "%",
      "of training time waited",
    ),
  );
}

function chart() {
  if (history_.length < 3 || Math.max(...history_) === 0) return null;
  const most = Math.max(...history_);
  const at = (value, i) =>
    `${(100 * (HISTORY_MAX - history_.length + i) / (HISTORY_MAX - 1)).toFixed(2)},` +
    `${(30 - 28 * value / most).toFixed(2)}`;
  const line = `M${history_.map(at).join("L")}`;
  const svg = document.createElementNS("http://www.w3.org/2000/svg", "svg");
  svg.setAttribute("viewBox", "0 0 100 30");
  svg.setAttribute("preserveAspectRatio", "none");
  svg.setAttribute("role", "img");
  svg.setAttribute("aria-label", "Elements per second over the last three minutes");
  const start = at(0, 0).split(",")[0];
  for (const [d, name] of [[`${line}L100,30L${start},30Z`, "area"], [line, ""]]) {
    const path = document.createElementNS("http://www.w3.org/2000/svg", "path");
    path.setAttribute("d", d);
    path.setAttribute("class", name);
    svg.append(path);
  }
  const caption = `Elements to trainers per second, last 3 minutes; at most ${number(most)}/s`;
  return h("div", { class: "card" }, h("div", { class: "muted" }, caption), svg);
}

function jobCard(job) {
  const { parameters: { processingMode, sharing, numConsumers }, usage } = job;
  const kind = [
    processingMode,
    sharing ? "shared" : null,
    numConsumers === undefined ? null : `${numConsumers} consumers in rounds`,
  ].filter((word) => word !== null).join(", ");
  const cost = usage.workerCpuHours === null
    ? `${duration(usage.workerBusyHours)} of pipeline work (no worker has a process of its own, ` +
      "so CPU time is not known)"
    : `${duration(usage.workerCpuHours)} of CPU and ` +
      `${bytes(1e9 * usage.workerMemoryGBHours)} hours of memory on workers, ` +
      `$${dollars(usage.workersDollars)} at the paper's prices`;
  return h(
    "div",
    { class: "card" },
    h("div", { class: "job" }, h("h3", null, job.name), h("span", { class: "muted" }, kind)),
    job.iterations.map(iterationView),
    h("div", { class: "facts" }, `So far: ${cost}; ${duration(usage.clientHours)} of clients.`),
  );
}

function iterationView(iteration) {
  const { repetition, splits, readers, tasks, finished, optimalWorkers, rounds } = iteration;
  const facts = [
    `Repetition ${repetition}`,
    finished ? "all produced" : counted(tasks.length, "task"),
    optimalWorkers === null ? null : `its clients could use ${number(optimalWorkers)} workers`,
  ].filter((fact) => fact !== null).join(" · ");
  const windows = tasks.flatMap(({ worker, figures }) =>
    figures?.sharing ? [[worker, figures.sharing]] : []
  );
  return h(
    "div",
    null,
    h("div", { class: "facts" }, facts),
    splits.map(({ handedOut, total }, source) =>
      h(
        "div",
        { class: "wide" },
        h(
          "span",
          { class: "muted" },
          `${splits.length === 1 ? "Splits" : `Splits of source ${source}`}: ` +
            `${handedOut.toLocaleString("en")} of ${total.toLocaleString("en")} assigned`,
        ),
        bar(total === 0 ? 1 : handedOut / total),
      )
    ),
    rounds === undefined || readers.length === 0
      ? null
      : h("div", { class: "facts" }, `Rounds: ${roundsAt(rounds)}. ${rounds.text}`),
    readers.length === 0 ? null : clientTable(readers),
    tasks.flatMap(compressionFacts),
    windows.length === 0 ? null : windowTable(windows),
  );
}

/** What a task decided about compression, if it had anything to decide. */
function compressionFacts({ worker, figures }) {
  const { active, bytes: tried, ms, reason } = figures?.compression ??
    { active: "none", bytes: 0, ms: 0 };
  if (active === "none" && tried === 0 && ms === 0) return [];
  const how = active === "none" ? "does not compress" : `compresses with ${active}`;
  return [h("div", { class: "facts" }, `${worker} ${how}: ${reason}.`)];
}

function roundsAt({ lowest, highest }) {
  if (lowest === null) return "not started";
  return lowest === highest ? `all at ${lowest}` : `consumers are at ${lowest} to ${highest}`;
}

function clientTable(readers) {
  return table(
    [["client"], ...headingsOf("client")],
    readers.map(({ clientId, consumerIndex, position, figures }) => {
      const at = position === undefined ? "" : ` at round ${position.round}`;
      const name = consumerIndex === null ? `${clientId}` : `consumer ${consumerIndex}${at}`;
      const tone = (share) => share > 0.1 ? "warn" : "good";
      return [name, ...cellsOf("client", figures, { tone })];
    }),
  );
}

function windowTable(windows) {
  return table(
    [["sharing window at"], ...headingsOf("sharing")],
    windows.map(([worker, window]) => [worker, ...cellsOf("sharing", window)]),
  );
}

function workerTable(workers) {
  const headings = [
    ["worker"],
    ["state"],
    ...headingsOf("task"),
    ...headingsOf("process"),
    ["tasks", "number"],
  ];
  return table(
    headings,
    workers.map(({ name, ref, tags, alive, activity, figures, tasks, unreachable }) => {
      const process = figures?.process ?? null;
      const mark = process?.shared ? " *" : "";
      const about = [ref.node === name ? null : ref.node, tags.join(" ") || null]
        .filter((word) => word !== null).join(" · ");
      return [
        [name, about === "" ? null : h("small", null, about)],
        [
          h("span", { class: `state ${STATE_TONES[activity.state]}` }, activity.state),
          activity.reason === null
            ? null
            : h("small", { class: alive && unreachable ? "bad" : "" }, activity.reason),
        ],
        ...cellsOf("task", figures),
        ...cellsOf("process", process, { mark }),
        String(tasks),
      ];
    }),
  );
}

function view(state) {
  const { workers, jobs } = state;
  const [running, others] = [true, false].map((runs) =>
    jobs.filter((job) => job.iterations.some(isActive) === runs).reverse()
  );
  const isShared = workers.some(({ figures }) => figures?.process?.shared);
  return [
    ...verdicts(state),
    tiles(state),
    chart(),
    h("h2", null, "Jobs"),
    ...(jobs.length === 0
      ? [h("p", { class: "muted" }, "There are none.")]
      : [...running, ...others].map(jobCard)),
    h("h2", null, "Workers"),
    workers.length === 0
      ? h("p", { class: "muted" }, "There are none.")
      : h("div", { class: "card" }, workerTable(workers)),
    isShared
      ? h("p", { class: "muted" }, "* of the whole process, which several workers share")
      : null,
  ].filter((part) => part !== null);
}

const byId = (id) => document.getElementById(id);

async function poll() {
  try {
    const response = await fetch("state", {
      cache: "no-store",
      signal: AbortSignal.timeout(ANSWER_TIMEOUT_MS),
      headers: token === undefined ? {} : { authorization: `Bearer ${token}` },
    });
    if (!response.ok) throw new Error(`HTTP ${response.status}: ${await response.text()}`);
    show(await response.json());
  } catch (error) {
    byId("status").textContent = `The dispatcher does not answer (${error.message})`;
  }
  setTimeout(poll, POLL_MS);
}

function show(state) {
  history_.push(totals(state).elements);
  if (history_.length > HISTORY_MAX) history_.shift();
  byId("status").textContent = `as of ${new Date().toLocaleTimeString()}`;
  // A redraw would clear the text that a user has selected to copy.
  if (!document.getSelection().isCollapsed) return;
  byId("cluster").textContent = `cluster ${state.clusterId}`;
  byId("view").replaceChildren(...view(state));
}

poll();
