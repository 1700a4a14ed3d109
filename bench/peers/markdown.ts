/** Formats the results of a comparison as a page of Markdown, with the goals that were missed. */
import { cellText, formatNumber, type Table } from "../../cli/lib/table.ts";
import { CASES, type Part, PARTS, type Peer, PEERS } from "./cases.ts";
import { type CaseResult, LEAT } from "./measure.ts";
import { coordinationGains, moreText, type PeerReport } from "./report.ts";

const NAMES: Readonly<Record<Peer, string>> = {
  tensorflow: "tf.data",
  torch: "DataLoader",
  grain: "Grain",
  spdl: "SPDL",
};

/** Returns the page. `deno fmt` aligns its tables afterwards. */
export function renderMarkdown(report: PeerReport): string {
  const { results, startedAt, commandLine, machine, versions, missing } = report;
  const parts = [...new Set(results.map(({ part }) => part))];
  const failures = results.flatMap(({ name, failed }) =>
    Object.entries(failed).map(([side, why]) => `- ${name}: ${side} failed: ${why}`)
  );
  const facts = [
    ...Object.entries({ ...machine, ...versions }),
    ...Object.entries(missing).map(([peer, why]) => [`No ${peer}`, why]),
  ].map(([name, value]) => `${name}: ${value}`);
  return `# Leat and its peers: results of a run

This command has written the page. [README.md](README.md#peers-peers) says what limits Leat.

\`\`\`sh
${commandLine}
\`\`\`

${startedAt.slice(0, 16).replace("T", " ")} UTC. ${facts.join(". ")}.

A number is the median of all windows, per second. A ratio is the median over the rounds, each of
which compares neighbouring windows. A spread is (highest − lowest) ÷ median: that of a ratio is in
parentheses, those of the numbers are in the order of the columns. Only ratios carry over to another
machine.

## Goals

${goalsOf(results)}
${failures.length === 0 ? "" : `\n## Failures\n\n${failures.join("\n")}\n`}
${parts.map((part) => sectionOf(part, results.filter((one) => one.part === part))).join("\n")}`;
}

function goalsOf(results: readonly CaseResult[]): string {
  const rows = results.flatMap(({ name, sides }) => {
    const goals = CASES.find((one) => one.name === name)?.goals ?? {};
    return sides.filter(({ side }) => side in goals).map((result) => {
      const peer = result.side as Peer;
      const goal = goals[peer]!;
      return { name, result, peer: NAMES[peer], goal, isMet: result.leatRatio >= goal };
    });
  });
  const missed = rows.filter(({ isMet }) => !isMet);
  const summary = `${rows.length - missed.length} of ${rows.length} goals are met.`;
  if (missed.length === 0) return summary;
  return `${summary} These are not:

${
    markdownTable({
      title: "",
      columns: [
        { heading: "case" },
        { heading: "peer" },
        { heading: "Leat ÷ peer" },
        { heading: "goal", digits: 2 },
      ],
      rows: missed.map(({ name, peer, result, goal }) => [name, peer, ratioText(result), goal]),
    })
  }`;
}

function sectionOf(part: Part, results: readonly CaseResult[]): string {
  const peers = PEERS.filter((peer) =>
    results.some(({ sides }) => sides.some(({ side }) => side === peer))
  );
  const hasMore = results.some(({ sides }) => sides.some(({ also }) => also !== undefined));
  const gains = coordinationGains(results);
  return `## ${PARTS[part]}

${
    markdownTable({
      title: PARTS[part],
      columns: [
        { heading: "case" },
        { heading: "unit" },
        { heading: "Leat" },
        ...peers.map((peer) => ({ heading: NAMES[peer] })),
        ...peers.map((peer) => ({ heading: `Leat ÷ ${NAMES[peer]}` })),
        { heading: "spreads in %" },
        ...(hasMore ? [{ heading: "also measured, in the same order" }] : []),
      ],
      rows: results.map(({ name, unit, sides }) => {
        const resultOf = (wanted: string) => sides.find(({ side }) => side === wanted);
        const present = [LEAT, ...peers].flatMap((side) => resultOf(side) ?? []);
        const rate = (side: string) => {
          const found = resultOf(side);
          return found && formatNumber(found.median);
        };
        return [
          ...[name, unit, rate(LEAT), ...peers.map(rate)],
          ...peers.map((peer) => ratioText(resultOf(peer))),
          present.map(({ spread }) => formatNumber(100 * spread, 0)).join(", "),
          ...(hasMore ? [present.map(({ also = {} }) => moreText(also)).join("; ")] : []),
        ];
      }),
    })
  }${gains === "" ? "" : `\n${gains}\n`}`;
}

function ratioText(result: CaseResult["sides"][number] | undefined): string | undefined {
  return result &&
    `${formatNumber(result.leatRatio, 2)} (${formatNumber(100 * result.ratioSpread, 0)} %)`;
}

function markdownTable({ columns, rows }: Table): string {
  const line = (cells: readonly string[]) => `| ${cells.join(" | ")} |\n`;
  const isText = columns.map((_, index) =>
    rows.some((row) => /^[a-z]/i.test(`${row[index] ?? ""}`))
  );
  return line(columns.map(({ heading }) => heading)) +
    line(isText.map((text) => text ? "---" : "---:")) +
    rows.map((row) => line(row.map((cell, index) => cellText(cell, columns[index]!)))).join("");
}
