// `ToolError`, and the shape of an error's `stack`.
(function (native) {
  const { defineProperty } = Object;
  const { Error, TypeError } = globalThis;
  const ErrorPrototype = Error.prototype;
  const stackOf = native.stack;

  // What a call is rejected with. The guest makes these itself, with every field
  // the object's own; a script may make some too, say for its tests.
  class ToolError extends Error {
    constructor(message, fields) {
      super(message);
      if (fields !== null && typeof fields === "object") {
        for (const name of ["code", "tool", "retryable", "content", "structuredContent"]) {
          if (name in fields) this[name] = fields[name];
        }
      }
    }
  }
  defineProperty(ToolError.prototype, "name", {
    value: "ToolError",
    writable: true,
    enumerable: false,
    configurable: true,
  });
  defineProperty(globalThis, "ToolError", {
    value: ToolError,
    writable: true,
    enumerable: false,
    configurable: true,
  });

  // The conventional text: what it is, then where, in the script's own lines.
  const setter = Object.getOwnPropertyDescriptor(ErrorPrototype, "stack").set;
  const toString = ErrorPrototype.toString;
  const apply = Reflect.apply;
  defineProperty(ErrorPrototype, "stack", {
    get() {
      const frames = stackOf(this);
      if (frames === undefined) return undefined;
      const headline = apply(toString, this, []);
      return frames === "" ? headline : headline + "\n" + frames;
    },
    set: setter,
    enumerable: false,
    configurable: true,
  });
  defineProperty(Error, "captureStackTrace", {
    // Where it was called: the second argument, from which on frames are left out, is not asked for.
    value: function captureStackTrace(object) {
      if (object === null || (typeof object !== "object" && typeof object !== "function")) {
        throw new TypeError("captureStackTrace needs an object to write the stack to");
      }
      const frames = stackOf(new Error());
      const headline = apply(toString, object, []);
      const stack = frames === undefined || frames === "" ? headline : `${headline}\n${frames}`;
      defineProperty(object, "stack", { value: stack, writable: true, enumerable: false, configurable: true });
    },
    writable: true,
    enumerable: false,
    configurable: true,
  });
  return ToolError;
})
