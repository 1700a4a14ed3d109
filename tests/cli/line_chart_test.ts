/** Line charts: where the text of a marker stands. */
import { drawLines, type LineChart } from "../../cli/lib/line_chart.ts";
import { assertEquals } from "../assert.ts";

/** The anchor of the text of a marker at `x`, in a chart from `first` to `last`. */
function anchorOf(x: number, xScale: LineChart["xScale"], first: number, last: number) {
  const points = [first, last].map((x) => ({ x, y: 1, provenance: "measured" as const }));
  const { svg } = drawLines({
    ...{ title: "t", description: "d", xLabel: "x", xScale, yLabel: "y", ySuffix: "" },
    series: [{ name: "s", color: "red", points }],
    references: [],
    markers: [{ x, text: "the marker" }],
  });
  return /text-anchor="(\w+)"(?:(?!text-anchor)[^])*the marker/.exec(svg)?.[1];
}

Deno.test("drawLines puts the text of a marker towards the middle, on linear and logarithmic axes", () => {
  for (const first of [-10, 0, 1]) {
    assertEquals(anchorOf(first + 1, "linear", first, 100), "start");
    assertEquals(anchorOf(30, "linear", first, 100), "start");
    assertEquals(anchorOf(80, "linear", first, 100), "end");
  }
  assertEquals(anchorOf(5, "log", 1, 100), "start");
  assertEquals(anchorOf(30, "log", 1, 100), "end");
});
