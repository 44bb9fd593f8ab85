// QuickJS kept it as a property.
const bytes = new Uint8Array(1);
bytes[NaN] = 1;
log([Object.keys(bytes), NaN in bytes, bytes.NaN, Reflect.set(bytes, 'NaN', 2), '-NaN' in bytes]);
attempt(() => Object.defineProperty(bytes, 'NaN', { value: 1 }));
