// QuickJS closed nothing when the function of a grouping failed, and made its key twice.
const items = (end) => ({ at: 0, next() { return { done: this.at > end, value: this.at++ } }, return() { log('closed'); return {} }, [Symbol.iterator]() { return this } });
log(Object.groupBy(items(2), x => ({ toString: () => { log('key'); return x % 2 } })));
for (const group of [Object.groupBy, Map.groupBy]) {
  attempt(() => group(items(2), x => { if (x > 0) throw new RangeError('thrown') }));
  log(group(items(1), function () { return typeof this }));
}
attempt(() => Object.groupBy(items(2), () => ({ toString() { throw new RangeError('key') } })));
