const found = await demo.tickets_list({});
return JSON.parse(found).tickets;
