const handlers = { start: () => 1 };
const { stop } = handlers;
return stop();
