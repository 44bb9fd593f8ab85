// Stands behind errors.js where a script waited for what nothing can settle. Each wait
// says that it begins and that it is over; those that are not are why.
const { wait: look__y, later: look__y2 } = (() => {
  const { say, json, apply, iterator, later, isArray, isObject, getPrototypeOf, PromiseOf } = look__parts;
  const { then } = PromiseOf.prototype, { all, allSettled, any, race } = PromiseOf;
  const map = new WeakMap();
  const asynchronous = [async () => {}, async function* () {}].map((it) => getPrototypeOf(it));
  let begun = 0;
  const begin = (it, about) => {
    const id = begun += 1;
    say('look__' + json({ wait: id, ...about }));
    const over = () => { say('look__' + json({ over: id })) };
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
      // What such a function promised, or what it gives one after the other, waits for something in there.
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
