const { items } = await files.list({});
let text = "";
for (const { name, id } of items) text += name.padEnd(8) + String(id * 1.5) + "\n";
const lines = text.split("\n").filter((line) => line.trim());
const found = lines.map((line) => /(\w+)\s+([\d.]+)/.exec(line)?.[2] ?? "");
return lines.join(", ").replace(/\s+/g, " ") + Object.entries({ a: 1 }).length + found.length;
