// Reads one line of JSON per server on stdin. Prints the tokens (o200k) of its
// declarations at each level, as a share of the tokens of the tools' JSON. Exits
// with 1 if a level exceeds its limit over all servers together.
import { countTokens } from "gpt-tokenizer/encoding/o200k_base";
import { readFileSync } from "node:fs";

const BOUNDS = { names: null, lines: 0.06, signatures: 0.22, full: 0.55 };
const LEVELS = Object.keys(BOUNDS);

const lines = readFileSync(0, "utf8").split("\n").filter(Boolean);
const servers = lines.map((line) => {
  const { server, raw, ...texts } = JSON.parse(line);
  const counted = LEVELS.map((level) => [level, countTokens(texts[level])]);
  const tokens = raw.reduce((sum, tool) => sum + countTokens(tool), 0);
  return { server, tools: raw.length, raw: tokens, ...Object.fromEntries(counted) };
});

const sum = (column) => servers.reduce((total, it) => total + it[column], 0);
const columns = ["tools", "raw", ...LEVELS];
const total = { server: "all", ...Object.fromEntries(columns.map((it) => [it, sum(it)])) };

const share = (row, level) => (row[level] / row.raw).toFixed(3);
const cells = (row) => [
  row.server,
  String(row.tools),
  String(row.raw),
  ...LEVELS.map((level) => `${row[level]} (${share(row, level)})`),
];
const bounds = LEVELS.map((level) => (BOUNDS[level] === null ? "-" : `<= ${BOUNDS[level]}`));
const table = [
  ["server", "tools", "JSON", ...LEVELS],
  ...servers.map(cells),
  cells(total),
  ["bound", "", "", ...bounds],
];
const widths = table[0].map((_, at) => Math.max(...table.map((row) => row[at].length)));
for (const row of table) {
  const padded = row.map((cell, at) => (at === 0 ? cell.padEnd(widths[at]) : cell.padStart(widths[at])));
  console.log(`| ${padded.join(" | ")} |`);
  if (row === table[0]) console.log(`|${widths.map((width) => "-".repeat(width + 2)).join("|")}|`);
}

const over = LEVELS.filter((level) => BOUNDS[level] !== null && total[level] / total.raw > BOUNDS[level]);
for (const level of over) {
  console.error(`error: ${level} takes ${share(total, level)} of the JSON, more than ${BOUNDS[level]}`);
}
process.exitCode = over.length > 0 ? 1 : 0;
