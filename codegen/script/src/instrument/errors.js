// Prepended to a script that runs a second time to explain its failure. Each member read, call,
// destructuring and iteration calls these functions. They print an operation that is about to
// fail, and then let the engine fail, so that the script sees the same error as the first time.
let look__t, look__s, look__f, look__made = (made) => made;
const { read: look__r, call: look__c, make: look__n, apart: look__d, given: look__p, guard: look__g, over: look__i, all: look__a, name: look__u, thrown: look__x, end: look__e, same: look__v, parts: look__parts } = (() => {
  const say = console.debug, json = JSON.stringify, { parse } = JSON, { apply, construct, getPrototypeOf } = Reflect;
  const { keys, getOwnPropertyNames, getOwnPropertyDescriptor } = Object, { isArray } = Array;
  const map = new WeakMap(), known = map.get.bind(map), keep = map.set.bind(map);
  const text = Function.prototype.toString, iterator = Symbol.iterator, later = Symbol.asyncIterator;
  const [PromiseOf, MapOf, SetOf, DateOf, ErrorOf] = [Promise, Map, Set, Date, Error];
  const isObject = (it) => it !== null && (typeof it === 'object' || typeof it === 'function');
  const isNative = (it) => apply(text, it, []).includes('[native code]');
  const isMaker = (it) => {
    try { return typeof it === 'function' && construct(Object, [], it) !== undefined } catch { return false }
  };
  // The last value at each place, and the places of the active calls.
  const last = [], open = [];
  // The errors so far, with their messages, which the script may repeat.
  const failed = [];
  const because = (it) => {
    const text = typeof it === 'string' ? it : it instanceof ErrorOf ? it.message : undefined;
    const is = ([error, message]) => error !== it && (it?.cause === error || (message && typeof text === 'string' && text.includes(message)));
    return failed.slice(-50).findLast(is)?.[2];
  };
  let said = 0, value, valueNote;

  // Describes a value by its kind, size and member names, without its content.
  const names = (all) => ({ keys: all.slice(0, 200).map((key) => key.slice(0, 100)), of: all.length });
  const lists = (it, own) => own.slice(0, 50).filter((key) => isArray(getOwnPropertyDescriptor(it, key)?.value)).slice(0, 2).map((key) => key.slice(0, 100));
  const describe = (it) => {
    if (it === null) return { kind: 'null' };
    if (typeof it === 'string') return { kind: 'string', looks: it.length > 1 && '{['.includes(it.trimStart()[0]) };
    if (typeof it !== 'object') return { kind: typeof it };
    if (isArray(it)) return { kind: 'array', size: it.length };
    if (it instanceof PromiseOf) return { kind: 'promise' };
    if (it instanceof MapOf) return { kind: 'map', size: it.size };
    if (it instanceof SetOf) return { kind: 'set', size: it.size };
    if (it instanceof DateOf) return { kind: 'date' };
    if (it instanceof ErrorOf) return { kind: 'error', ...names(getOwnPropertyNames(it).filter((key) => key !== 'stack')) };
    const up = getPrototypeOf(it);
    const own = keys(it);
    if (up === null || up === Object.prototype) return { kind: 'object', ...names(own), lists: lists(it, own) };
    return { kind: 'object', ...names([...own, ...getOwnPropertyNames(up).filter((key) => key !== 'constructor')]) };
  };

  // The active calls, innermost first. Of a recursion, only a few calls are listed.
  const stack = () => {
    const calls = [];
    for (let at = open.length - 1; at >= 0 && calls.length < 20; at -= 1) {
      if (open[at] !== open[at + 3]) calls.push(open[at]);
    }
    return calls;
  };
  const note = (error, place, more) => {
    if (isObject(error) ? known(error) : valueNote && Object.is(value, error)) return;
    if (said >= 1000) return;
    let about;
    try { about = more() } catch { return }
    said += 1;
    if (isObject(error)) keep(error, said);
    else [value, valueNote] = [error, said];
    say('look__' + json({ note: said, place, ...about, stack: stack() }));
    if (error instanceof ErrorOf && about.name !== undefined) failed.push([error, error.message, said]);
  };
  const fail = (place, action, more) => {
    try { action() } catch (error) {
      note(error, place, () => ({ name: error.name, ...more() }));
      throw error;
    }
  };
  const follow = (place, action, toBuiltIn, ups, noText) => {
    const depth = open.push(place) - 1;
    try {
      return action();
    } catch (error) {
      open.length = depth;
      note(error, place, () => {
        const given = toBuiltIn?.();
        if (!given || given.some((one) => typeof one === 'function')) return { around: true };
        const missing = given.findIndex((one) => one === null || one === undefined);
        if (missing < 0) return { name: error?.name, inside: true, value: noText?.() };
        return { name: error?.name, inside: true, missing, value: describe(given[missing]), ...parent(ups?.[missing + 1]) };
      });
      throw error;
    } finally {
      open.length = depth;
    }
  };
  // In a chain that ended early, describes the innermost parent that had a value.
  const parent = (up) => {
    if (up === undefined) return {};
    const all = isArray(up) ? up : [up];
    const there = all.findIndex((one) => last[one] !== null && last[one] !== undefined);
    return there < 0 ? { parent: describe(last[all[0]]) } : { parent: describe(last[all[there]]), up: there };
  };

  const over = (it, place, isLater, up) => {
    const can = it !== null && it !== undefined &&
      (typeof it === 'string' || typeof it[iterator] === 'function' || (isLater && typeof it[later] === 'function'));
    if (!can) fail(place, () => [...it], () => ({ value: describe(it), ...parent(up) }));
    return it;
  };
  const call = (place, self, it, given, ups) => {
    if (typeof it !== 'function') {
      const about = self === undefined ? parent(ups?.[0]) : { parent: describe(self) };
      fail(place, () => it(), () => ({ value: describe(it), ...about }));
    }
    return follow(place, () => look__made(apply(it, self, given), it, given), () => (isNative(it) ? given : undefined), ups, it === parse && isObject(given[0]) ? () => describe(given[0]) : undefined);
  };

  return {
    parts: { say, json, note, fail, describe, parent, over, last, known, isObject, isNative, apply, text, iterator, later, isArray, PromiseOf, getPrototypeOf },
    same: (it) => it,
    read: (it, place, up) => {
      last[place] = it;
      if (it === null || it === undefined) fail(place, () => it.it, () => ({ value: describe(it), ...parent(up) }));
      return it;
    },
    call,
    // A value that is not iterable becomes a rejection here.
    all: (place, self, it, given, where, up) => {
      try {
        over(given[0], where, false, up);
      } catch (error) {
        return PromiseOf.reject(error);
      }
      return call(place, self, it, given);
    },
    make: (place, it, given, up) => {
      if (!isMaker(it)) fail(place, () => new it(), () => ({ value: describe(it), ...parent(up) }));
      return follow(place, () => construct(it, given), () => (isNative(it) ? [] : undefined));
    },
    apart: (it, place, isList, paths, up) => {
      last[place] = it;
      if (it === null || it === undefined) {
        fail(place, () => { const {} = it }, () => ({ value: describe(it), ...parent(up) }));
      }
      if (isList && typeof it[iterator] !== 'function') {
        fail(place, () => [...it], () => ({ value: describe(it), ...parent(up) }));
      }
      paths.forEach((path, at) => {
        let here = it, above;
        const isInnerList = path[0] === true;
        for (const key of isInnerList ? path.slice(1) : path) {
          // Only arrays are iterated here: other iterables may allow only one iteration.
          if (here === null || here === undefined || (typeof key === 'number' && !isArray(here))) return;
          above = here;
          here = here[key];
        }
        const about = () => ({ path: at, value: describe(here), parent: describe(above) });
        if (here === null || here === undefined) fail(place, () => { const {} = here }, about);
        if (isInnerList && typeof here[iterator] !== 'function') fail(place, () => [...here], about);
      });
      return it;
    },
    given: (place) => fail(place, () => { const {} = undefined }, () => ({ value: describe(undefined) })),
    guard: (it, patterns, isAsync) => function (...given) {
      try {
        for (const [at, place] of patterns) {
          if (given[at] === null) fail(place, () => { const {} = null }, () => ({ value: describe(null) }));
        }
      } catch (error) {
        if (isAsync) return PromiseOf.reject(error);
        throw error;
      }
      return look__made(apply(it, this, given), it, given);
    },
    over,
    name: (place, action, it, keys) => {
      try { return action(it, keys) } catch (error) {
        note(error, place, () => ({ name: error?.name, inside: true }));
        throw error;
      }
    },
    thrown: (it, place, isNew) => {
      if (!isObject(it)) valueNote = undefined;
      if (isNew || !(it instanceof ErrorOf)) note(it, place, () => ({ thrown: true, because: because(it) }));
      return it;
    },
    end: (error) => {
      const found = isObject(error) ? known(error) : valueNote && Object.is(value, error) ? valueNote : undefined;
      say('look__' + json({ end: found ?? 0 }));
      return error;
    },
  };
})();
