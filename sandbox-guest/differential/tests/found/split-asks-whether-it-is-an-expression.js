// Creating the expression that splits reads `Symbol.match`, and a getter of it may have side
// effects.
let r = /a/;
Object.defineProperty(r, Symbol.match, { get() { log('asked'); r.compile('b'); } });
attempt(() => r[Symbol.split]('abba'));
Object.defineProperty(RegExp.prototype, Symbol.match, { get() { log('asked of all'); } });
attempt(() => 'abba'.split(/b/));
