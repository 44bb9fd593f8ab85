// `ToolError`, and the format of an error's `stack`.
(function (native) {
  const { defineProperty } = Object;
  const { Error, TypeError } = globalThis;
  const ErrorPrototype = Error.prototype;
  const stackOf = native.stack;

  // The error with which a call is rejected. The guest creates it natively, with all fields as own
  // properties. A script may create one too, for example in its tests.
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

  // The conventional format: the headline, then the frames with the lines of the script.
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
    // The frames of the call. The second argument, a function whose frames are omitted, is ignored.
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
