// Loaded before a host. Extends its time limits of a second or more, for slow machines. Shorter
// timers are no time limits, and stay unchanged.
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
