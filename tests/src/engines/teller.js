const { log, attempt, attemptClass, attemptAny, attemptLater, detach, tick } = (() => {
  const uncurried = Function.prototype.bind.bind(Function.prototype.call);
  const { ownKeys, getOwnPropertyDescriptor, getPrototypeOf, defineProperty, isExtensible } = Reflect;
  const { isArray } = Array;
  const has = uncurried(Object.prototype.hasOwnProperty);
  const getter = (prototype, name) => uncurried(getOwnPropertyDescriptor(prototype, name).get);
  const [charCode, slice, startsWith] = ["charCodeAt", "slice", "startsWith"].map((name) => uncurried(String.prototype[name]));
  const inRadix = uncurried(Number.prototype.toString);
  const describe = uncurried(Symbol.prototype.toString);
  const timeOf = uncurried(Date.prototype.valueOf);
  const [sizeOfMap, sizeOfSet] = [getter(Map.prototype, "size"), getter(Set.prototype, "size")];
  const [eachOfMap, eachOfSet] = [uncurried(Map.prototype.forEach), uncurried(Set.prototype.forEach)];
  const [sourceOf, flagOf] = [getter(RegExp.prototype, "source"), getter(RegExp.prototype, "global")];
  const kindOfTyped = getter(getPrototypeOf(Uint8Array.prototype), Symbol.toStringTag);
  const bytesOf = getter(ArrayBuffer.prototype, "byteLength");
  const clone = structuredClone;
  const later = uncurried(Promise.prototype.then);
  const sort = uncurried(Array.prototype.sort);
  const print = console.log;
  const [ObjectPrototype, ArrayPrototype, FunctionPrototype, ErrorPrototype] =
    [Object.prototype, Array.prototype, Function.prototype, Error.prototype];
  const { RangeError, is, setPrototypeOf } = { RangeError: globalThis.RangeError, is: Object.is, setPrototypeOf: Object.setPrototypeOf };

  // Initial globals are printed by name, without their members.
  const [named, nameOf] = [new Map(), uncurried(Map.prototype.get)];
  const names = ownKeys(globalThis);
  for (let at = 0; at < names.length; at++) {
    const it = getOwnPropertyDescriptor(globalThis, names[at]).value;
    if (it === null || it === undefined || typeof it !== "object" && typeof it !== "function") continue;
    named.set(it, names[at]);
    if (typeof it === "function" && it.prototype) named.set(it.prototype, `${names[at]}.prototype`);
  }
  named.delete(globalThis.input);
  // The engines differ in the text of functions and in the order of built-in members.
  Function.prototype.toString = { toString() {
    if (typeof this !== "function") throw new TypeError();
    return `function ${tried(() => dataOf(this, "name"))}`;
  } }.toString;
  const LINES_MAX = 300, TEXT_MAX = 3000, UNITS_MAX = 200, MEMBERS_MAX = 40, DEPTH_MAX = 5;
  const tried = (read) => { try { return read() } catch { return undefined } };
  const quoted = (text) => {
    let told = "'", sum = 0;
    for (let at = 0; at < text.length; at++) {
      const unit = charCode(text, at);
      sum = (sum * 31 + unit) % 1000003;
      if (at >= UNITS_MAX) continue;
      told += unit >= 32 && unit < 127 && unit !== 39 && unit !== 92 ? text[at] : "\\u" + slice("000" + inRadix(unit, 16), -4);
    }
    return told + (text.length > UNITS_MAX ? `… ${text.length} ${sum}'` : "'");
  };
  const dataOf = (object, key) => {
    const property = getOwnPropertyDescriptor(object, key);
    return property !== undefined && has(property, "value") ? property.value : undefined;
  };
  const classOf = (object) => {
    const prototype = tried(() => getPrototypeOf(object));
    if (prototype === null) return " of nothing";
    if (prototype === undefined || prototype === ObjectPrototype || prototype === ArrayPrototype || prototype === FunctionPrototype) return "";
    const made = tried(() => dataOf(prototype, "constructor"));
    const name = typeof made === "function" ? tried(() => dataOf(made, "name")) : undefined;
    return " of " + (typeof name === "string" ? name : "?");
  };
  const isError = (object) => {
    for (let at = object, steps = 0; at !== null && steps < 9; at = getPrototypeOf(at), steps++) if (at === ErrorPrototype) return true;
    return false;
  };
  const kindOf = (object) => {
    if (typeof object === "function") return "function";
    if (tried(() => isArray(object))) return "array";
    if (tried(() => isError(object))) return "error";
    const typed = tried(() => kindOfTyped(object));
    if (typed !== undefined) return typed;
    const time = tried(() => timeOf(object));
    if (time !== undefined) return `date ${time}`;
    const size = tried(() => sizeOfMap(object)) ?? tried(() => sizeOfSet(object));
    if (size !== undefined) return `${size} in`;
    const flag = tried(() => flagOf(object));
    if (flag !== undefined) return `/${tried(() => quoted(sourceOf(object)))}/${flag ? "g" : ""}`;
    const bytes = tried(() => bytesOf(object));
    return bytes === undefined ? "object" : `${bytes} bytes`;
  };
  const tell = (whole) => {
    let length = 0;
    const seen = setPrototypeOf([], null);
    let seenCount = 0;
    const value = (it, depth) => {
      const told = told_(it, depth);
      length += told.length;
      return told;
    };
    const told_ = (it, depth) => {
      switch (typeof it) {
        case "number": return is(it, -0) ? "-0" : `${it}`;
        case "string": return quoted(it);
        case "bigint": return `${it}n`;
        case "symbol": return describe(it);
        case "object": case "function": return it === null ? "null" : object(it, depth);
        default: return `${it}`;
      }
    };
    const object = (it, depth) => {
      for (let at = 0; at < seenCount; at++) if (seen[at] === it) return `#${at}`;
      seen[seenCount++] = it;
      const name = nameOf(named, it);
      if (name !== undefined) return name;
      if (depth > DEPTH_MAX || length > TEXT_MAX) return "…";
      const kind = kindOf(it);
      let told = kind + classOf(it) + (tried(() => isExtensible(it)) === false ? " closed" : "");
      if (kind === "error") { const message = tried(() => dataOf(it, "message")); told += ` ⟦${typeof message === "string" ? quoted(message) : ""}⟧`; }
      if (kind === "function") { const name = tried(() => dataOf(it, "name")); told += typeof name === "string" ? ` ${quoted(name)}` : " ?"; told += `/${tried(() => dataOf(it, "length"))}`; }
      return told + members(it, kind, depth) + entries(it, depth);
    };
    const members = (it, kind, depth) => {
      const keys = tried(() => ownKeys(it));
      if (keys === undefined) return " without keys";
      let told = "", count = 0;
      for (let at = 0; at < keys.length; at++) {
        const key = keys[at];
        if (kind === "error" && (key === "stack" || key === "message")) continue;
        if (kind === "function" && (key === "prototype" || key === "name" || key === "length")) continue;
        if (++count > MEMBERS_MAX) continue;
        const property = tried(() => getOwnPropertyDescriptor(it, key));
        told += (typeof key === "symbol" ? describe(key) : quoted(key)) + ": ";
        if (property === undefined) { told += "?, "; continue }
        told += (has(property, "writable") && !property.writable ? "fixed " : "") + (property.enumerable ? "" : "hidden ") + (property.configurable ? "" : "lasting ");
        if (has(property, "value")) told += value(property.value, depth + 1);
        else told += (property.get ? "get " : "") + (property.set ? "set" : "");
        told += ", ";
      }
      return count === 0 ? "" : ` {${told}${count > MEMBERS_MAX ? `${count} in all` : ""}}`;
    };
    const entries = (it, depth) => {
      let told = "", count = 0;
      const add = (entry) => { if (++count <= MEMBERS_MAX) told += `${value(entry, depth + 1)}, ` };
      if (tried(() => sizeOfMap(it)) !== undefined) eachOfMap(it, (entry, key) => { add(key); add(entry) });
      else if (tried(() => sizeOfSet(it)) !== undefined) eachOfSet(it, (entry) => add(entry));
      return count === 0 ? "" : ` [${told}]`;
    };
    return value(whole, 0);
  };

  let lines = 0, ticks = 0;
  const line = (text) => { if (++lines <= LINES_MAX) print(text) };
  const classAlone = (error) => slice(tell(error), 0, 40).replace(/ ⟦.*/s, "").replace(/ \{.*/s, "");
  return {
    log: (value) => { line(tell(value)); return value },
    attempt: (use) => { try { line(tell(use())) } catch (error) { line("threw " + tell(error)) } },
    attemptClass: (use) => { try { line(tell(use())) } catch (error) { line("threw " + tell(error)) } },
    attemptAny: (use) => { try { line(tell(use())) } catch { line("threw") } },
    attemptLater: async (use) => { try { line(tell(await use())) } catch (error) { line("threw " + tell(error)) } },
    detach: (buffer) => { clone(buffer, { transfer: [buffer] }); return null },
    // Ends a long loop at the same place on both engines.
    tick: () => { if (++ticks > 3000) throw new RangeError("ticked") },
  };
})();
