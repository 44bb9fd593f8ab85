// Files one ticket for each kind of error in the logs.
const { entries } = await demo.logs_query({ level: "error", limit: 500 });

const counts = new Map();
for (const { service, message } of entries) {
  const title = `${service}: ${message.replace(/\d+/g, "N")}`;
  counts.set(title, (counts.get(title) ?? 0) + 1);
}

await Promise.all([...counts].map(([title, count]) =>
  demo.tickets_create({ title, body: `Seen ${count} times`, priority: "normal" })));
return `${entries.length} log entries, ${counts.size} tickets filed`;
