// A list with one item is sorted: the item is not even converted to text.
attempt(() => [Symbol('s')].sort());
attempt(() => [Symbol('s'), undefined].toSorted());
attempt(() => [{ toString() { log('toString'); return 'a' } }].sort());
attempt(() => [1].sort(() => { throw new RangeError('compared') }));
