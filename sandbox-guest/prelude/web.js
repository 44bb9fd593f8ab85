// Functions that scripts expect beyond ECMAScript. All built-ins that are used later are saved
// here, so that a script's changes to them have no effect.
(function (native) {
  const { TypeError, RangeError, Error, Date, Map, Set, RegExp, ArrayBuffer, Array, Promise } = globalThis;
  const { defineProperty, getPrototypeOf, keys, getOwnPropertyNames } = Object;
  const ObjectPrototype = Object.prototype;
  const uncurry = (method) => Function.prototype.call.bind(method);
  const { apply } = Reflect;
  const isArray = Array.isArray;

  const global = (name, value) =>
    defineProperty(globalThis, name, { value, writable: true, enumerable: false, configurable: true });

  // queueMicrotask
  const then = uncurry(Promise.prototype.then);
  const resolved = Promise.resolve.bind(Promise);
  const setTimeout = globalThis.setTimeout;
  global("queueMicrotask", function queueMicrotask(callback) {
    if (typeof callback !== "function") throw new TypeError("queueMicrotask needs a function to call");
    // No code can catch an error of the callback: it ends the run, like an error in a timer.
    then(then(resolved(), () => callback()), undefined, (error) => {
      setTimeout(() => { throw error; }, 0);
    });
  });

  // structuredClone
  class DataCloneError extends Error {}
  defineProperty(DataCloneError.prototype, "name", { value: "DataCloneError" });
  const dateTime = uncurry(Date.prototype.getTime);
  const mapGet = uncurry(Map.prototype.get);
  const mapSet = uncurry(Map.prototype.set);
  const mapHas = uncurry(Map.prototype.has);
  const mapEach = uncurry(Map.prototype.forEach);
  const setAdd = uncurry(Set.prototype.add);
  const setEach = uncurry(Set.prototype.forEach);
  const tagOf = uncurry(ObjectPrototype.toString);
  const slice = uncurry(ArrayBuffer.prototype.slice);
  const getter = (prototype, name) => uncurry(Object.getOwnPropertyDescriptor(prototype, name).get);
  const TypedArray = getPrototypeOf(Uint8Array);
  const bufferOf = getter(TypedArray.prototype, "buffer");
  const offsetOf = getter(TypedArray.prototype, "byteOffset");
  const lengthOf = getter(TypedArray.prototype, "length");
  const tagOfTyped = getter(TypedArray.prototype, Symbol.toStringTag);
  const sourceOf = getter(RegExp.prototype, "source");
  const flagsOf = getter(RegExp.prototype, "flags");
  const mapSize = getter(Map.prototype, "size");
  const setSize = getter(Set.prototype, "size");
  const bytesIn = getter(ArrayBuffer.prototype, "byteLength");
  const constructors = { __proto__: null };
  for (const name of ["Int8Array", "Uint8Array", "Uint8ClampedArray", "Int16Array", "Uint16Array",
    "Int32Array", "Uint32Array", "BigInt64Array", "BigUint64Array", "Float32Array", "Float64Array"]) {
    constructors[name] = globalThis[name];
  }
  const errors = { __proto__: null };
  for (const name of ["Error", "EvalError", "RangeError", "ReferenceError", "SyntaxError", "TypeError", "URIError"]) {
    errors[name] = globalThis[name];
  }
  // A method throws a `TypeError` for a value of another class. Any other error, such as a stack
  // overflow, does not depend on the value.
  const TypeErrorPrototype = TypeError.prototype;
  const is = (test, value) => {
    try {
      test(value);
      return true;
    } catch (error) {
      if (getPrototypeOf(error) !== TypeErrorPrototype) throw error;
      return false;
    }
  };

  const cloneObject = (value, seen) => {
    if (mapHas(seen, value)) return mapGet(seen, value);
    const keep = (copy) => { mapSet(seen, value, copy); return copy; };
    if (isArray(value)) {
      const copy = keep(new Array(value.length));
      for (const key of keys(value)) copy[key] = clone(value[key], seen);
      return copy;
    }
    if (is(dateTime, value)) return keep(new Date(dateTime(value)));
    if (is(mapSize, value)) {
      const copy = keep(new Map());
      mapEach(value, (item, key) => mapSet(copy, clone(key, seen), clone(item, seen)));
      return copy;
    }
    if (is(setSize, value)) {
      const copy = keep(new Set());
      setEach(value, (item) => setAdd(copy, clone(item, seen)));
      return copy;
    }
    if (is(bytesIn, value)) return keep(slice(value, 0));
    const typed = tagOfTyped(value);
    if (typed !== undefined) {
      const buffer = clone(bufferOf(value), seen);
      return keep(new constructors[typed](buffer, offsetOf(value), lengthOf(value)));
    }
    const tag = tagOf(value);
    if (tag === "[object RegExp]" && value !== RegExp.prototype) {
      return keep(new RegExp(sourceOf(value), flagsOf(value)));
    }
    if (value instanceof Error) {
      const copy = keep(new (errors[value.name] ?? Error)(value.message));
      if ("cause" in value) copy.cause = clone(value.cause, seen);
      copy.stack = value.stack;
      return copy;
    }
    if (tag === "[object Promise]" || tag === "[object WeakMap]" || tag === "[object WeakSet]" || tag === "[object WeakRef]") {
      throw new DataCloneError(`${tag} cannot be cloned`);
    }
    const copy = keep({});
    for (const key of keys(value)) {
      defineProperty(copy, key, {
        value: clone(value[key], seen), writable: true, enumerable: true, configurable: true,
      });
    }
    return copy;
  };
  const clone = (value, seen) => {
    if (typeof value === "function" || typeof value === "symbol") {
      throw new DataCloneError(`a ${typeof value} cannot be cloned`);
    }
    return value !== null && typeof value === "object" ? cloneObject(value, seen) : value;
  };
  global("structuredClone", function structuredClone(value) { return clone(value, new Map()); });

  // Text and base64
  const { utf8Encode, utf8Decode, base64Encode, base64Decode } = native;
  class TextEncoder {
    get encoding() { return "utf-8"; }
    encode(text = "") { return utf8Encode(text); }
  }
  class TextDecoder {
    #fatal;
    constructor(label = "utf-8", options = {}) {
      const name = `${label}`.trim().toLowerCase();
      if (name !== "utf-8" && name !== "utf8") throw new RangeError(`the encoding '${label}' is not supported`);
      this.#fatal = Boolean(options?.fatal);
    }
    get encoding() { return "utf-8"; }
    get fatal() { return this.#fatal; }
    get ignoreBOM() { return false; }
    decode(bytes) { return utf8Decode(bytes, this.#fatal); }
  }
  global("TextEncoder", TextEncoder);
  global("TextDecoder", TextDecoder);

  class InvalidCharacterError extends Error {}
  defineProperty(InvalidCharacterError.prototype, "name", { value: "InvalidCharacterError" });
  global("btoa", function btoa(text) {
    const encoded = base64Encode(text);
    if (encoded === null) throw new InvalidCharacterError("btoa takes characters up to U+00FF; encode the text first");
    return encoded;
  });
  global("atob", function atob(text) {
    const decoded = base64Decode(text);
    if (decoded === null) throw new InvalidCharacterError("invalid base64");
    return decoded;
  });

  // Randomness and time
  const { fillRandom, randomUUID, elapsed } = native;
  const crypto = {
    getRandomValues(view) { return fillRandom(view); },
    randomUUID() { return randomUUID(); },
  };
  const performance = { now() { return elapsed(); } };
  defineProperty(performance, "timeOrigin", { get() { return Date.now() - elapsed(); } });
  global("crypto", crypto);
  global("performance", performance);

  // Functions that the engine's library lacks
  if (Array.fromAsync === undefined) {
    defineProperty(Array, "fromAsync", {
      value: async function fromAsync(items, map = undefined, self = undefined) {
        const result = [];
        let index = 0;
        const add = async (item) => {
          const value = map === undefined ? item : await apply(map, self, [item, index]);
          defineProperty(result, index, { value, writable: true, enumerable: true, configurable: true });
          index += 1;
        };
        if (items[Symbol.asyncIterator] !== undefined || items[Symbol.iterator] !== undefined) {
          for await (const item of items) await add(item);
        } else {
          for (let at = 0; at < items.length; at += 1) await add(await items[at]);
        }
        return result;
      },
      writable: true, enumerable: false, configurable: true,
    });
  }

  // Dates as people write them: `May 17, 2024`, `17 May 2024 10:00`, `2024/05/17`, `5/17/24 3 PM`,
  // `Fri, 17 May 2024 10:00:00 GMT`, `Fri May 17 2024 10:00:00 GMT+0200 (CEST)`.
  const MONTHS = ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"];
  const DAYS = ["sun", "mon", "tue", "wed", "thu", "fri", "sat"];
  const ZONES = {
    __proto__: null, z: 0, ut: 0, utc: 0, gmt: 0,
    est: -300, edt: -240, cst: -360, cdt: -300, mst: -420, mdt: -360, pst: -480, pdt: -420,
  };
  const FILLING = ["st", "nd", "rd", "th", "at", "t", "of"];
  const DATE_CHARS_MAX = 128;
  const parse = Date.parse;
  const UTC = Date.UTC;
  const exec = uncurry(RegExp.prototype.exec);
  const lower = uncurry(String.prototype.toLowerCase);
  const cut = uncurry(String.prototype.slice);
  const indexOf = uncurry(Array.prototype.indexOf);
  const includes = uncurry(Array.prototype.includes);
  const push = uncurry(Array.prototype.push);
  const pop = uncurry(Array.prototype.pop);
  // A time; a zone offset; a number; a word; a comment in parentheses; a separator.
  const PIECE = /(\d{1,2}):(\d{2})(?::(\d{2})(?:[.,](\d+))?)?|([+-])(\d{1,2}):?(\d{2})?(?![\d-])|(\d+)|([A-Za-z]+)\.?|(\([^()]*\))|[\s,./-]/y;
  const read = (text) => {
    if (text.length > DATE_CHARS_MAX) return NaN;
    const numbers = [];
    let clock = null;
    let month = -1;
    let zone;
    let half;
    let at = 0;
    while (at < text.length) {
      PIECE.lastIndex = at;
      const piece = exec(PIECE, text);
      if (piece === null) return NaN;
      // A sign before a number is an offset only after a time or a zone name.
      if (piece[5] !== undefined && clock === null && zone === undefined) {
        at += 1;
        continue;
      }
      at += piece[0].length;
      if (piece[1] !== undefined) {
        if (clock !== null) return NaN;
        clock = [+piece[1], +piece[2], +(piece[3] ?? 0), +cut((piece[4] ?? "0") + "00", 0, 3)];
      } else if (piece[5] !== undefined) {
        if (zone) return NaN;
        const digits = piece[6] + (piece[7] ?? "");
        const minutes = digits.length > 2 ? +cut(digits, 0, -2) * 60 + +cut(digits, -2) : +digits * 60;
        zone = piece[5] === "+" ? minutes : -minutes;
      } else if (piece[8] !== undefined) {
        push(numbers, piece[8]);
      } else if (piece[9] !== undefined) {
        const name = lower(piece[9]);
        const start = cut(name, 0, 3);
        if (name in ZONES) zone = ZONES[name];
        else if (name === "am" || name === "pm") {
          if (clock === null && numbers.length > 0) clock = [+pop(numbers), 0, 0, 0];
          half = name;
        } else if (includes(MONTHS, start)) month = indexOf(MONTHS, start);
        else if (!includes(DAYS, start) && !includes(FILLING, name)) return NaN;
      }
    }
    return moment(numbers, month, clock, half, zone ?? 0);
  };
  const isYear = (number) => number.length > 2 || +number > 31;
  const moment = (numbers, month, clock, half, zone) => {
    let year = "2001";
    let day = "1";
    const first = numbers[0];
    if (numbers.length > 3 || numbers.length === 0) return NaN;
    if (month >= 0) {
      if (numbers.length === 3) return NaN;
      if (isYear(first)) [year, day = "1"] = numbers;
      else [day, year = year] = numbers;
    } else if (numbers.length === 1) {
      return NaN;
    } else if (isYear(first)) {
      [year, month, day = "1"] = numbers;
    } else {
      [month, day, year = year] = numbers;
    }
    if (typeof month === "string") month -= 1;
    if (year.length > 6 || isYear(day)) return NaN;
    if (year.length < 3) year = +year < 50 ? +year + 2000 : +year + 1900;
    if (!(month >= 0 && month < 12 && +day >= 1)) return NaN;
    let [hour, minute, seconds, millisecond] = clock ?? [0, 0, 0, 0];
    if (half !== undefined) {
      if (clock === null || hour < 1 || hour > 12) return NaN;
      hour = (hour % 12) + (half === "pm" ? 12 : 0);
    }
    const isMidnight = hour === 24 && minute + seconds + millisecond === 0;
    if ((hour > 23 && !isMidnight) || minute > 59 || seconds > 59) return NaN;
    return UTC(+year, month, +day, hour, minute, seconds, millisecond) - zone * 60_000;
  };
  // The formats of the standard and of the engine itself. In other formats, some engines accept
  // invalid dates.
  const EXACT = /^(?:[+-]?\d{4,6}(?:-\d\d){0,2}(?:T|$)|[A-Za-z]{3} [A-Za-z]{3} \d\d -?\d{4,6} |[A-Za-z]{3}, \d\d [A-Za-z]{3} -?\d{4,6} )/;
  const lenient = (text) => {
    const exact = exec(EXACT, text) === null ? NaN : parse(text);
    return exact === exact ? exact : read(text);
  };
  const construct = Reflect.construct;
  const DatePrototype = Date.prototype;
  const LenientDate = function Date(...values) {
    if (new.target === undefined) return apply(Date_, undefined, values);
    if (values.length === 1 && typeof values[0] === "string") values[0] = lenient(values[0]);
    return construct(Date_, values, new.target);
  };
  const Date_ = Date;
  for (const name of getOwnPropertyNames(Date_)) {
    if (name !== "prototype") {
      defineProperty(LenientDate, name, Object.getOwnPropertyDescriptor(Date_, name));
    }
  }
  defineProperty(LenientDate, "prototype", { value: DatePrototype, writable: false });
  defineProperty(LenientDate, "parse", {
    value: { parse(text) { return lenient(`${text}`); } }.parse,
    writable: true, enumerable: false, configurable: true,
  });
  defineProperty(DatePrototype, "constructor", {
    value: LenientDate, writable: true, enumerable: false, configurable: true,
  });
  global("Date", LenientDate);
})
