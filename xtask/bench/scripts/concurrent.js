const waits = Array.from({ length: input.count }, () => bench.wait({ ms: 10 }));
const replies = await Promise.all(waits);
return replies.length;
