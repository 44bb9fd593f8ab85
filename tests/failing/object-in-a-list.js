const { tickets } = await demo.tickets_list({ limit: 0 }).catch(() => ({ tickets: [] }));
const [{ id }] = tickets;
return id;
