const names = { pick() { return 'report' } };
const data = { list: { total: 1 }, report() { return this.list } };
return data[names.pick?.()]?.().rows.length;
