// Finds what went wrong on the demo server and files one ticket for each
// distinct error that has none yet.
//
//   airlock run examples/triage.js --demo --allow 'demo.*'

const { entries } = await demo.logs_query({ level: "error", limit: 500 });

// "timeout after 31 ms" and "timeout after 7 ms" are the same error.
const kindOf = (entry) => `${entry.service}: ${entry.message.replace(/\d+/g, "N")}`;

const kinds = new Map();
for (const entry of entries) {
  const kind = kinds.get(kindOf(entry)) ?? { example: entry, count: 0 };
  kind.count += 1;
  kinds.set(kindOf(entry), kind);
}
console.log(`${entries.length} errors of ${kinds.size} kinds`);

const filed = await Promise.all(
  [...kinds].map(async ([title, { example, count }]) => {
    const { tickets } = await demo.tickets_list({ status: "open", text: title });
    if (tickets.length > 0) {
      return null;
    }
    return demo.tickets_create({
      title,
      body: `Seen ${count} times since ${example.ts}, first as: ${example.message}`,
      priority: count > 2 ? "high" : "normal",
      labels: ["triage"],
    });
  }),
);

const created = filed.filter((ticket) => ticket !== null);
for (const ticket of created) {
  console.log(`#${ticket.id} ${ticket.title}`);
}
return `${entries.length} errors, ${kinds.size} distinct, ${created.length} tickets filed`;
