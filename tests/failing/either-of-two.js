const result = await demo.tickets_list({});
const items = result.items ?? result.data;
return items.filter((it) => it.priority === "high");
