const text = Array.from({ length: 20_000 }, (_, id) => `${id},user ${id},active,${id % 97}`).join("\n");
let sum = 0;
for (const line of text.split("\n")) sum += Number(line.split(",")[3]);
return [text.length, sum];
