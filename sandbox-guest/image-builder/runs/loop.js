const { items } = await files.list({ path: "/" });
const names = [];
for (const item of items) {
  const found = await files.read({ id: item.id });
  if (found.items.length > 0 && item.open) names.push(`${item.name}: ${found.items.length}`);
}
console.log("seen", names.length);
return { names, count: items.length };
