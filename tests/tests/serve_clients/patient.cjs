// Loaded before a host: whatever would end after some seconds may take much longer, as it
// does on a slow machine. What is shorter paces something and stays.
const { promisify } = require("node:util");

const FROM_MS = 1_000;
const TIMES = 20;
const MOST_MS = 2 ** 31 - 1;

const stretched = (ms) => (ms >= FROM_MS ? Math.min(ms * TIMES, MOST_MS) : ms);

const start = globalThis.setTimeout;
const startLater = (then, ms, ...rest) => start(then, stretched(ms), ...rest);
startLater[promisify.custom] = (ms, ...rest) => start[promisify.custom](stretched(ms), ...rest);
globalThis.setTimeout = startLater;

const limit = AbortSignal.timeout;
AbortSignal.timeout = (ms) => limit.call(AbortSignal, stretched(ms));
