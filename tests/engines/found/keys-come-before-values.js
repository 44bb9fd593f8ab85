// QuickJS made a text of a computed key behind the value, and of a method's key twice.
const key = { toString() { log('key'); return 'k' } };
log({ [key]: log('value'), [key]() {} });
class Made { [key] = log('own'); [key]() {} [log('last')] = 1 }
log(Object.keys(new Made()));
