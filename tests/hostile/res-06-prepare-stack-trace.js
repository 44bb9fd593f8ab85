// case: RES-06
// expect: script_error
// error: plain
Error.prepareStackTrace = (e, frames) => "frames: " + frames.map((f) => f.getFileName());
throw new Error("plain");
