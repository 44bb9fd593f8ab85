// Making the expression that splits asks for `Symbol.match`, and whoever is asked may look.
let r = /a/;
Object.defineProperty(r, Symbol.match, { get() { log('asked'); r.compile('b'); } });
attempt(() => r[Symbol.split]('abba'));
Object.defineProperty(RegExp.prototype, Symbol.match, { get() { log('asked of all'); } });
attempt(() => 'abba'.split(/b/));
