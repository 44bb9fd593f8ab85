// case: AMB-01
// expect: ok
// value: "no finer than the clock"
if (typeof Temporal === "undefined") return "no finer than the clock";
const now = Temporal.Now.instant();
const coarse = now.epochNanoseconds % 1_000_000n === 0n;
const zone = Temporal.Now.timeZoneId();
return coarse && zone === "UTC" ? "no finer than the clock" : [String(now), zone];
