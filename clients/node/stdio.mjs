// Starts `airlock serve` and exchanges one JSON message per line with it.

import { spawn } from "node:child_process";

import { AirlockError } from "./errors.mjs";

const STDERR_CHARS_KEPT = 4_000;
/** Time for airlock to end after its input has ended, and again after SIGTERM. */
const END_WAIT_MS = 5_000;
/** Time for output that a process of airlock may still hold open. */
const OUTPUT_WAIT_MS = 1_000;

export class StdioTransport {
  onmessage = () => {};
  onend = () => {};
  #child;
  #ended;
  #parts = [];
  #stderr = "";
  #isClosing = false;
  #hasAnswered = false;

  constructor(command, args, { env, cwd, onStderr }) {
    const child = spawn(command, args, { env, cwd, stdio: ["pipe", "pipe", "pipe"] });
    this.#child = child;
    child.stdout.setEncoding("utf8").on("data", (text) => this.#read(text));
    child.stderr.setEncoding("utf8").on("data", (text) => {
      this.#stderr = (this.#stderr + text).slice(-STDERR_CHARS_KEPT);
      onStderr(text);
    });
    // A write to a process that has ended fails. The end itself is reported below.
    child.stdin.on("error", () => {});
    this.#ended = new Promise((resolve) => {
      child.on("error", (error) => {
        if (child.pid !== undefined) return;
        const isMissing = error.code === "ENOENT";
        this.onend(cannotStart(isMissing ? `there is no program ${command}` : error.message));
        resolve();
      });
      child.on("exit", async (code, signal) => {
        await within(OUTPUT_WAIT_MS, new Promise((done) => child.on("close", done)));
        for (const stream of [child.stdin, child.stdout, child.stderr]) stream.destroy();
        this.onend(this.#whyEnded(code, signal));
        resolve();
      });
    });
  }

  async send(message) {
    this.#child.stdin.write(JSON.stringify(message) + "\n");
  }

  /** Ends airlock: by the end of its input, then by signals. */
  async close() {
    this.#isClosing = true;
    this.#child.stdin.end();
    for (const signal of ["SIGTERM", "SIGKILL"]) {
      if (await within(END_WAIT_MS, this.#ended)) return;
      this.#child.kill(signal);
    }
    await this.#ended;
  }

  /** Reads lines. A line can come in many parts, so that parts are joined only at its end. */
  #read(text) {
    let from = 0;
    for (let end = text.indexOf("\n"); end >= 0; end = text.indexOf("\n", from)) {
      this.#parts.push(text.slice(from, end));
      const line = this.#parts.join("");
      this.#parts = [];
      from = end + 1;
      this.#readLine(line);
    }
    if (from < text.length) this.#parts.push(text.slice(from));
  }

  #readLine(line) {
    let message;
    try {
      message = JSON.parse(line);
    } catch {
      return;
    }
    this.#hasAnswered = true;
    this.onmessage(message);
  }

  #whyEnded(code, signal) {
    if (this.#isClosing) return closed();
    const how = signal ? `the signal ${signal} ended it` : `it ended with exit code ${code}`;
    const said = this.#stderr.trim();
    if (!this.#hasAnswered) return cannotStart(said || how);
    return new AirlockError("airlock-ended", {
      what: "airlock ended before the client was closed",
      why: said ? `${how}, after it had printed:\n${said}` : how,
      next: "start airlock again; `airlock runs list` shows what happened to each run",
    });
  }
}

export function closed() {
  return new AirlockError("closed", {
    what: "the client is closed",
    why: "`close` was called",
    next: "start another client with `Airlock.start`",
  });
}

function cannotStart(why) {
  return new AirlockError("cannot-start", {
    what: "airlock cannot start",
    why,
    next: "correct the options of `Airlock.start`; `command` is the path of the program",
  });
}

/** Waits for a promise at most this long. Returns whether it was fulfilled. */
async function within(ms, promise) {
  let timer;
  const late = new Promise((resolve) => (timer = setTimeout(resolve, ms, false)));
  const isDone = await Promise.race([promise.then(() => true), late]);
  clearTimeout(timer);
  return isDone;
}
