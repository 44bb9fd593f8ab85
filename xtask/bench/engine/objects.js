const items = Array.from({ length: 100_000 }, (_, id) => ({ id, level: id % 5 ? "info" : "error", ms: id % 1000 }));
const slow = items.filter((item) => item.level === "error" && item.ms > 500).map((item) => ({ ...item, seconds: item.ms / 1000 }));
return [slow.length, slow.reduce((sum, item) => sum + item.seconds, 0).toFixed(3)];
