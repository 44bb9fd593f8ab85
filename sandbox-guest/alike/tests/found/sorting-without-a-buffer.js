// A typed array whose buffer is gone is not sorted, compared or not.
const list = new Uint8Array([2, 1]);
detach(list.buffer);
attempt(() => list.sort((a, b) => a - b));
attempt(() => list.toSorted((a, b) => a - b));
attempt(() => list.sort());
