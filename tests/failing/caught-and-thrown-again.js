const load = async () => {
  try {
    const found = await demo.tickets_list({});
    return found.ticket.length;
  } catch (error) {
    throw new Error(`cannot load: ${error.message}`);
  }
};
return await load();
