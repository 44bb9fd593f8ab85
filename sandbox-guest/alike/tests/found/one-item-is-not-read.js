// A list of one is in order: its item is not even turned into text.
attempt(() => [Symbol('s')].sort());
attempt(() => [Symbol('s'), undefined].toSorted());
attempt(() => [{ toString() { log('toString'); return 'a' } }].sort());
attempt(() => [1].sort(() => { throw new RangeError('compared') }));
