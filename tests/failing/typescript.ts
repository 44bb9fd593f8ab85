interface Entry { message: string; host?: { name: string } }
const found = (await demo.logs_query({ limit: 1 })) as { entries: Entry[] };
const names: string[] = found.entries.map((entry: Entry): string => entry.host!.name);
return names;
