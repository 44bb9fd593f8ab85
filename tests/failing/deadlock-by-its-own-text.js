const short = (async (x) => { await x; }).toString().length < 30;
const bad = ["ev", "il"].join("");
await Promise.allSettled([demo.logs_query({ level: bad }), short && demo.logs_query({ level: bad })]);
await new Promise(() => {});
