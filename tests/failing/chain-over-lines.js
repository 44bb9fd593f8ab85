const found = await demo.logs_query({});
return found
  .entries
  .filter((entry) => entry.level === 'error')
  .at(-1)
  .context.stack;
