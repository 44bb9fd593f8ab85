// Appended to errors.js for the operator pass: operators, assignments, classes and awaits
// call these functions, which apply the script's own operators.
const { binary: look__o, unary: look__o1, held: look__o2, inside: look__o3, tag: look__h, parent: look__h2, constant: look__k, write: look__w, change: look__w2, each: look__i2, wait: look__y, within: look__m } = (() => {
  const { note, fail, describe, parent, isObject, apply, iterator, PromiseOf, getPrototypeOf } = look__parts;
  const { getOwnPropertyDescriptor, isFrozen, isExtensible } = Object, { then } = PromiseOf.prototype;
  const absent = Symbol();
  const both = {
    '+': (a, b) => a + b, '-': (a, b) => a - b, '*': (a, b) => a * b, '/': (a, b) => a / b,
    '%': (a, b) => a % b, '**': (a, b) => a ** b, '<<': (a, b) => a << b, '>>': (a, b) => a >> b,
    '>>>': (a, b) => a >>> b, '&': (a, b) => a & b, '|': (a, b) => a | b, '^': (a, b) => a ^ b,
    '<': (a, b) => a < b, '>': (a, b) => a > b, '<=': (a, b) => a <= b, '>=': (a, b) => a >= b,
    '==': (a, b) => a == b, '!=': (a, b) => a != b, 'in': (a, b) => a in b, 'instanceof': (a, b) => a instanceof b,
  };
  const one = { '+': (a) => +a, '-': (a) => -a, '~': (a) => ~a };
  // Reports the kinds of the operands. The primitive value of an object is not known.
  const operate = (place, operation, a, b, isTwo, up) => {
    try {
      return operation(a, b);
    } catch (error) {
      note(error, place, () => ({
        name: error?.name, operands: isTwo ? [describe(a), describe(b)] : [describe(a)], ...parent(up),
      }));
      throw error;
    }
  };
  const wide = (it) => isObject(it) && typeof it === 'object';
  // Returns why a member cannot be set.
  const refused = (it, key) => {
    if (!isObject(it)) return 'plain';
    if (isFrozen(it)) return 'frozen';
    for (let up = it; up !== null; up = getPrototypeOf(up)) {
      const own = getOwnPropertyDescriptor(up, key);
      if (own?.set === undefined && own?.get !== undefined) return 'computed';
      if (own?.writable === false) return 'constant';
      if (own !== undefined) return '';
    }
    return isExtensible(it) ? '' : 'closed';
  };
  const write = (place, it, key, value, set) => {
    try {
      return set(it, key, value);
    } catch (error) {
      note(error, place, () => {
        if (error?.name !== 'TypeError') return { name: error?.name };
        return { name: error.name, value: describe(it), refused: refused(it, key) };
      });
      throw error;
    }
  };

  return {
    binary: (place, operator, a, b, up) => operate(place, both[operator], a, b, true, up),
    unary: (place, operator, it) => operate(place, one[operator], it, undefined, false),
    held: (place, it) => operate(place, (it) => `${it}`, it, undefined, false),
    // A value that cannot have private members fails in the same way as one without members.
    inside: (place, it, up) => {
      if (!isObject(it)) fail(place, () => '' in it, () => ({ operands: [{ kind: 'string' }, describe(it)], ...parent(up) }));
      return it;
    },
    tag: (place, it, up) => {
      if (typeof it !== 'function') fail(place, () => it``, () => ({ value: describe(it), ...parent(up) }));
      return it;
    },
    parent: (place, it, up) => {
      const made = () => class extends it {};
      if (it !== null) operate(place, made, it, undefined, false, up);
      return it;
    },
    constant: (place, it) => fail(place, () => { const kept = 0; kept = it; }, () => ({ inside: true })),
    write,
    change: (place, doing, operator, it, key, get, set) => {
      const before = get(it, key);
      return (value) => write(place, it, key, operate(doing, both[operator], before, value, true), set);
    },
    each: (all, place, isList, paths) => {
      const make = all[iterator];
      return {
        [iterator]: () => {
          const going = apply(make, all, []);
          return {
            next: () => {
              const round = going.next();
              if (round.done) return round;
              try {
                look__d(round.value, place, isList, paths);
              } catch (error) {
                try { going.return?.(); } catch {}
                throw error;
              }
              return round;
            },
            return: (value) => going.return?.(value) ?? { done: true, value },
          };
        },
      };
    },
    // Checks the value of a nested pattern. Returns a key that no object has.
    within: (place, it) => {
      if (it === null) fail(place, () => { const {} = null }, () => ({ value: describe(null) }));
      return absent;
    },
    // Reports the rejection of a promise that failed outside of instrumented code.
    wait: (place, it) => {
      if (wide(it) && it instanceof PromiseOf && getPrototypeOf(it) === PromiseOf.prototype) {
        apply(then, it, [undefined, (error) => note(error, place, () => ({ name: error?.name, inside: true }))]);
      }
      return it;
    },
  };
})();
