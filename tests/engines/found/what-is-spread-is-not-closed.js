const items = { [Symbol.iterator]() { return { next() { throw new RangeError('next') }, return() { log('closed') } } } };
attempt(() => [...items]);
attempt(() => Math.max(...items));
