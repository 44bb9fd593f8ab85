const lists = await Promise.all([1, 2, 3].map((page) => files.list({ page })));
const all = lists.flatMap((list) => list.items);
const open = all.filter((item) => item.open).map((item) => item.id);
const total = all.reduce((sum, item) => sum + item.id, 0);
const byName = new Map(all.map((item) => [item.name, item]));
return { open, total, names: [...byName.keys()].sort(), parsed: JSON.parse(JSON.stringify(all)) };
