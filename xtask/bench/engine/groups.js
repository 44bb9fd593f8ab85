const rows = Array.from({ length: 30_000 }, (_, id) => ({ id, service: "service-" + (id % 40), ms: id % 700 }));
const groups = new Map();
for (const { service, ms } of rows) {
  const group = groups.get(service) ?? { count: 0, total: 0 };
  group.count += 1;
  group.total += ms;
  groups.set(service, group);
}
const lines = [...groups].map(([service, { count, total }]) => `${service.toUpperCase()}: ${count} (${(total / count).toFixed(1)} ms)`);
return lines.sort().slice(0, 3);
