/**
 * The style sheet of the report: one column of text, plots next to each other if there is space,
 * light or dark as the reader's system is.
 */

/** CSS; the plots take their colours from its variables. */
export const REPORT_STYLE = `
:root {
  --page: #f5f6f8; --surface: #ffffff; --text: #1b2230; --muted: #5c6675; --line: #dde1e8;
  --accent: #0b62a8; --danger: #c4162f;
  --series-1: #0b6fb8; --series-2: #c2570c; --series-3: #0a7f5c; --series-4: #96418a;
  --series-5: #7c6a00; --series-6: #66707f;
}
@media (prefers-color-scheme: dark) {
  :root {
    --page: #12161d; --surface: #1a2029; --text: #e4e8ee; --muted: #98a3b3; --line: #2e3744;
    --accent: #74b8f5; --danger: #ff7383;
    --series-1: #6cb4f4; --series-2: #f3a05c; --series-3: #5ecfa5; --series-4: #e29ad3;
    --series-5: #d6c44c; --series-6: #a5aebb;
  }
}
* { box-sizing: border-box; }
html { font: 16px/1.55 system-ui, -apple-system, "Segoe UI", Roboto, "Helvetica Neue", sans-serif; }
body { margin: 0; background: var(--page); color: var(--text); }
main { max-width: 1200px; margin: 0 auto; padding: 40px 24px 64px; }
h1 { font-size: clamp(1.5rem, 3.4vw, 2.1rem); line-height: 1.2; margin: 0 0 .5rem; text-wrap: balance; }
h2 { font-size: 1.35rem; line-height: 1.3; margin: 0 0 .6rem; }
p { margin: 0 0 .8rem; max-width: 78ch; }
code { font: .9em ui-monospace, SFMono-Regular, Menlo, Consolas, monospace; overflow-wrap: anywhere; }
.brand { color: var(--accent); font-weight: 700; letter-spacing: .04em; margin: 0 0 .3rem; }
.lead { font-size: 1.08rem; color: var(--muted); }
.facts { display: flex; flex-wrap: wrap; gap: .6rem 2.2rem; margin: 1.2rem 0; }
.facts dt { font-size: .8rem; color: var(--muted); }
.facts dd { margin: 0; }
.facts .command { flex-basis: 100%; }
.corpus, .notes { margin: 0; padding-left: 1.1rem; color: var(--muted); font-size: .92rem; max-width: 90ch; }
.tiles { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(100%, 230px), 1fr)); gap: 14px; margin: 2rem 0; }
.tile { display: block; padding: 14px 18px 16px; border: 1px solid var(--line); border-radius: 10px;
  background: var(--surface); color: inherit; text-decoration: none; font-size: .92rem; line-height: 1.4; }
.tile:hover, .tile:focus-visible { border-color: var(--accent); }
.tile strong { display: block; font-size: 1.9rem; line-height: 1.25; font-variant-numeric: tabular-nums; }
.tile em { color: var(--muted); font-size: .85em; white-space: nowrap; }
.letter { color: var(--muted); font-weight: 400; }
section { padding: 30px 0 10px; border-top: 1px solid var(--line); margin-top: 26px; }
.finding { font-size: 1.05rem; }
.figures { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(100%, 440px), 1fr)); gap: 18px; margin: 1.2rem 0; }
figure { margin: 0; padding: 16px 18px 10px; background: var(--surface); border: 1px solid var(--line); border-radius: 10px;
  min-width: 0; display: flex; flex-direction: column; }
figure .plot { margin-top: auto; }
figure.wide { grid-column: 1 / -1; }
figure.wide .plot { overflow-x: auto; }
figure.wide .plot > svg { min-width: 960px; }
figure .plot > svg { display: block; width: 100%; max-width: 100%; height: auto; }
figcaption { font-weight: 650; }
.legend { display: flex; flex-wrap: wrap; gap: 2px 16px; list-style: none; margin: 4px 0 8px; padding: 0;
  font-size: .84rem; color: var(--muted); }
.legend li { display: inline-flex; align-items: center; gap: 6px; }
details { margin: 0 0 1rem; }
summary { cursor: pointer; font-weight: 650; margin-bottom: .5rem; }
.scroll { overflow-x: auto; background: var(--surface); border: 1px solid var(--line); border-radius: 10px; }
table { border-collapse: collapse; width: 100%; font-size: .9rem; }
th, td { padding: 6px 14px; text-align: left; white-space: nowrap; }
th { font-weight: 600; color: var(--muted); white-space: normal; vertical-align: bottom; line-height: 1.3; }
tbody tr { border-top: 1px solid var(--line); }
.number { text-align: right; font-variant-numeric: tabular-nums; }
td.number { padding-right: 26px; }
th.number { padding-right: 26px; }
td.modelled { position: relative; }
td abbr { position: absolute; right: 10px; color: var(--muted); text-decoration: none; cursor: help; }
.table-legend { font-size: .84rem; color: var(--muted); margin: .4rem 0 0; }
footer { border-top: 1px solid var(--line); margin-top: 30px; padding-top: 24px; color: var(--muted); font-size: .92rem; }
footer h2 { font-size: 1.05rem; color: var(--text); }
@media (max-width: 560px) { main { padding: 24px 14px 40px; } figure { padding: 12px 10px 6px; } }
@media print { body { background: none; } figure, .tile { break-inside: avoid; } }
`;
