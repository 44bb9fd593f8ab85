const { rows } = await bench.export({});
const slow = rows.filter((row) => row.level === "error" && row.ms > 990);
const worst = slow.reduce((a, b) => (b.ms > a.ms ? b : a));
return { slow: slow.length, of: rows.length, worst: { id: worst.id, service: worst.service, ms: worst.ms } };
