const res = await demo.logs_query({ level: "error" });
return res.map((it) => it.message);
