// A typed array with a detached buffer is not sorted, with or without a comparison.
const list = new Uint8Array([2, 1]);
detach(list.buffer);
attempt(() => list.sort((a, b) => a - b));
attempt(() => list.toSorted((a, b) => a - b));
attempt(() => list.sort());
