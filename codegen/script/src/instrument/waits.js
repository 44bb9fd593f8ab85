// Appended to errors.js for a script that waits for something that never happens. The open waits
// are printed whenever none began or ended for a while, so the last list is printed when nothing
// can continue any more.
const { wait: look__y, later: look__y2 } = (() => {
  const { say, json, apply, iterator, later, isArray, isObject, getPrototypeOf, PromiseOf } = look__parts;
  const { then } = PromiseOf.prototype, { all, allSettled, any, race } = PromiseOf;
  const map = new WeakMap();
  const asynchronous = [async () => {}, async function* () {}].map((it) => getPrototypeOf(it));
  const open = new Map(), put = open.set.bind(open), drop = open.delete.bind(open), values = open.values.bind(open);
  const now = PromiseOf.resolve(), patience = 50;
  let begun = 0, events = 0, isGoing = false;
  const tell = () => {
    const waits = [];
    for (const one of values()) if (waits.push(one) >= 200) break;
    say('look__' + json({ waits }));
  };
  const rest = (seen, left) => {
    if (left > 0) {
      apply(then, now, [() => rest(events, events === seen ? left - 1 : patience)]);
    } else {
      isGoing = false;
      tell();
    }
  };
  const changed = () => {
    events += 1;
    if (isGoing) return;
    isGoing = true;
    rest(events, patience);
  };
  const begin = (it, about) => {
    const id = begun += 1;
    put(id, about);
    changed();
    const over = () => {
      drop(id);
      changed();
    };
    apply(then, it, [over, over]);
  };
  const wait = (place, it, isOwn) => {
    if (!isObject(it) || typeof it.then !== 'function') return it;
    const promise = PromiseOf.resolve(it);
    const together = map.get(promise);
    begin(promise, { place, own: isOwn || (together === undefined && map.has(promise)), of: together?.length });
    together?.forEach((one, at) => {
      if (isObject(one) && typeof one.then === 'function') begin(PromiseOf.resolve(one), { place, number: at + 1, own: map.has(one) });
    });
    return promise;
  };
  look__made = (made, it, given) => {
    if (!isObject(made)) return made;
    if ([all, allSettled, any, race].includes(it)) {
      if (isArray(given[0])) map.set(made, given[0]);
    } else if (asynchronous.includes(getPrototypeOf(it))) {
      // The result of an async function or generator waits for something inside that function.
      map.set(made, undefined);
    }
    return made;
  };
  return {
    wait,
    later: (place, all) => {
      const make = all[later] ?? all[iterator], isLater = all[later] !== undefined && all[later] !== null;
      return {
        [later]: () => {
          const going = apply(make, all, []);
          const settled = (round) => apply(then, PromiseOf.resolve(round.value), [(value) => ({ done: round.done, value })]);
          return {
            next: () => wait(place, isLater ? going.next() : settled(going.next()), map.has(all)),
            return: (value) => going.return?.(value) ?? { done: true, value },
          };
        },
      };
    },
  };
})();
