// case: ERR-06
// expect: ok
// value: [true,true,true]
const o = await box.echo({ list: [1], nested: {} });
return [
  Object.getPrototypeOf(o) === Object.prototype,
  Object.getPrototypeOf(o.list) === Array.prototype,
  box.echo({}) instanceof Promise,
];
