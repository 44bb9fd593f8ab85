// Removes features of this engine that no script needs.
(function ({ random }) {
  const { defineProperty, getPrototypeOf, setPrototypeOf } = Object;
  const { EvalError, Error, Math, Function } = globalThis;
  const hidden = (object, name, value) =>
    defineProperty(object, name, { value, writable: true, enumerable: false, configurable: true });

  // Text never becomes code. Each function constructor is replaced with one that throws. The new
  // one
  // has the prototype of the old one, so that `instanceof` still works.
  const refuse = () => {
    throw new EvalError("a script cannot turn text into code; write the code itself");
  };
  const constructorFor = (name, prototype) => {
    const constructor = { [name]: function () { refuse(); } }[name];
    defineProperty(constructor, "length", { value: 1 });
    defineProperty(constructor, "prototype", { value: prototype, writable: false });
    hidden(prototype, "constructor", constructor);
    return constructor;
  };
  const PlainFunction = constructorFor("Function", Function.prototype);
  hidden(globalThis, "Function", PlainFunction);
  for (const [name, sample] of [
    ["AsyncFunction", async () => {}],
    ["GeneratorFunction", function* () {}],
    ["AsyncGeneratorFunction", async function* () {}],
  ]) {
    setPrototypeOf(constructorFor(name, getPrototypeOf(sample)), PlainFunction);
  }
  hidden(globalThis, "eval", { eval(text) { refuse(text); } }.eval);

  // No shared memory, no hooks into the creation of errors, no globals that only this engine has.
  for (const name of ["SharedArrayBuffer", "Atomics", "WebAssembly", "DOMException", "InternalError"]) {
    delete globalThis[name];
  }
  delete globalThis[Symbol.toStringTag];
  Error.stackTraceLimit = 32;
  for (const name of ["stackTraceLimit", "prepareStackTrace"]) delete Error[name];

  hidden(Math, "random", { random() { return random(); } }.random);
})
