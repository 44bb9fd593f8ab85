#!/usr/bin/env node
// Starts the program in the package of this platform, with the same arguments, input and output.
"use strict";

const platforms = ["linux-x64", "linux-arm64", "darwin-arm64", "darwin-x64"];
const platform = `${process.platform}-${process.arch}`;
const name = `@PACKAGE@-${platform}`;

function fail(why, next) {
  process.stderr.write(`error: airlock cannot start\n  why: ${why}\n next: ${next}\n`);
  process.exit(1);
}

// The program was linked with glibc and names its loader. Node itself may use another C library.
const loaders = {
  "linux-x64": "/lib64/ld-linux-x86-64.so.2",
  "linux-arm64": "/lib/ld-linux-aarch64.so.1",
};
const loader = loaders[platform];
if (loader !== undefined && !require("node:fs").existsSync(loader)) {
  fail(
    `the program needs glibc, and this system has no ${loader}`,
    "use a system with glibc, or the container image"
  );
}

let program;
try {
  program = require.resolve(`${name}/bin/airlock`);
} catch {
  if (!platforms.includes(platform)) {
    fail(`there is no package for ${platform}`, `use one of ${platforms.join(", ")}`);
  }
  fail(
    `the package ${name} is not installed`,
    `install it: npm install ${name}@${require("./package.json").version}, or install again without --omit=optional`
  );
}

const args = process.argv.slice(2);
// Newer versions of Node replace this process. Older ones stay in between and pass signals on.
if (typeof process.execve === "function") {
  process.removeAllListeners("warning");
  process.emitWarning = () => {};
  process.execve(program, [program, ...args], process.env);
}
const child = require("node:child_process").spawn(program, args, { stdio: "inherit" });
for (const signal of ["SIGTERM", "SIGHUP"]) {
  process.on(signal, () => child.kill(signal));
}
// A terminal sends these to the program too.
for (const signal of ["SIGINT", "SIGQUIT"]) {
  process.on(signal, () => {});
}
child.on("error", (error) => fail(error.message, "install the package again"));
child.on("exit", (code, signal) => {
  process.exit(signal === null ? code : 128 + require("node:os").constants.signals[signal]);
});
