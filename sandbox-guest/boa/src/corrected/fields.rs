//! Tests of class fields whose initialisers write to the class: the results are those of the
//! specification.

use super::comes_to;

#[test]
fn a_field_may_write_to_its_class() {
    for (script, expected) in [
        (
            "class T { static n = 0; id = T.n++ } return [new T(), new T(), T.n]",
            r#"[{"id":0},{"id":1},2]"#,
        ),
        (
            "class T { static #n = 0; #id = ++T.#n\n get id() { return this.#id } static n() { return T.#n } } return [new T().id, new T().id, T.n()]",
            "[1,2,2]",
        ),
        (
            "class T { static n = 0; id = this.constructor.n++ } class U extends T { static n = 5; own = U.n++ } return [new T(), new U(), new U(), T.n, U.n]",
            r#"[{"id":0},{"id":5,"own":6},{"id":7,"own":8},1,9]"#,
        ),
        (
            "const made = []; const T = class { static all = []; id = (T.last = this, T.all.push(this)) }; new T(); new T(); return [T.all.length, T.last.id, T.name]",
            r#"[2,2,"T"]"#,
        ),
        (
            "const mixin = (Base) => class extends Base { id = (this.constructor.n = (this.constructor.n ?? 0) + 1) }; const A = mixin(Object), B = mixin(Map); return [new A().id, new A().id, new B().id, A.name]",
            r#"[1,2,1,""]"#,
        ),
        (
            "class T { a = 1; b = (T.x = 2); c = 3; m() { return 'm' } d = T.x; static s = 's'; e } const t = new T(); return [Object.keys(t), t, t.m(), T.s, Object.keys(T)]",
            r#"[["a","b","c","d","e"],{"a":1,"b":2,"c":3,"d":2},"m","s",["s","x"]]"#,
        ),
        (
            "class T { set a(v) { T.set = v } b = (T.n = 1); a = 2 } const t = new T(); return [Object.getOwnPropertyDescriptor(t, 'a'), T.set ?? null]",
            r#"[{"value":2,"writable":true,"enumerable":true,"configurable":true},null]"#,
        ),
        (
            "class T { static n = 0; id = T.n++; constructor(x) { this.x = [x, this.id, new.target === T, arguments.length] } } return [new T('a'), new T('b', 1), T.length]",
            r#"[{"id":0,"x":["a",0,true,1]},{"id":1,"x":["b",1,true,2]},1]"#,
        ),
        (
            "const log = []; class A { constructor(...a) { log.push(a) } } class T extends A { id = T.n = log.push('field') } new T(1, 2); class U extends A { id = U.n = log.push('u'); constructor() { log.push('before'); const it = super('s'); log.push(it === this, this.id) } } new U(); return [log, T.length, U.length]",
            r#"[[[1,2],"field","before",["s"],"u",true,5],0,0]"#,
        ),
        (
            "class A {} class T extends A { id = T.n = 1; constructor(how) { const make = () => super(); if (how) make(); else { let x\nx = 1\nsuper()\nthis.y = x } } } return [new T(true), new T(false)]",
            r#"[{"id":1},{"id":1,"y":1}]"#,
        ),
        (
            "class A {} class T extends A { id = T.n = 1; constructor(a = super()) { a.b = 2 } } return [new T(), T.length]",
            r#"[{"id":1,"b":2},0]"#,
        ),
        (
            "class A {} class T extends A { id = T.n = 1; constructor() { class U extends (super(), A) { id = U.n = 2; constructor() { super() } } this.u = new U() } } return new T()",
            r#"{"id":1,"u":{"id":2}}"#,
        ),
        (
            "const own = { x: 1 }; class A { constructor() { return own } } class T extends A { #p = T.n = 7; id = T.m = 8; static of(o) { return o.#p } } const t = new T(); return [t === own, t, T.of(own), t instanceof T]",
            r#"[true,{"x":1,"id":8},7,false]"#,
        ),
        (
            "class A { constructor() { return Object.freeze({}) } } class T extends A { id = T.n = 1 } try { new T() } catch (e) { return e.name }",
            "\"TypeError\"",
        ),
        (
            "const seen = []; class A { constructor() { return new Proxy({}, { defineProperty(t, k, d) { seen.push(k, d.value); return k !== 'no' } }) } } class T extends A { id = T.n = 1; no = 2 } try { new T() } catch (e) { return [e.name, seen] }",
            r#"["TypeError",["id",1,"no",2]]"#,
        ),
        (
            "class T extends null { id = T.n = 1 } try { new T() } catch (e) { return e.name }",
            "\"TypeError\"",
        ),
        (
            "class T { f = () => this.id; g = function () {}; id = T.n = 1; h = class {}; ['i j'] = () => 1; 'k l' = T.n; 7 = () => 2; [Symbol.iterator] = function* () { yield T.n } } const t = new T(); return [t.f(), t.f.name, t.g.name, t.h.name, t['i j'].name, t[7].name, t['k l'], [...t], t[Symbol.iterator].name]",
            r#"[1,"f","g","h","i j","7",1,[1],"[Symbol.iterator]"]"#,
        ),
        (
            "class T { static n = 0\n a = T.n++\n b = T.n++ /* why */ // here\n  c = [T.n++,\n T.n];\n *gen() { yield this.a }\n d\n get e() { return 1 }\n static f = 2\n async g() { }\n h = T.n > 1 ? T.n++ : 0\n} return [new T(), [...new T().gen()], T.n]",
            r#"[{"a":0,"b":1,"c":[2,3],"h":3},[4],8]"#,
        ),
        (
            "class T { static one = new T(); static n = 0; id = T.n = (T.n ?? 10) + 1; } return [T.one.id, T.n, new T().id]",
            "[11,0,1]",
        ),
        (
            "class N { static made = 0; id = N.made++; next = this.id < 5 ? new N() : null } let n = new N(), c = 0; for (; n; n = n.next) c += n.id; return [c, N.made]",
            "[15,6]",
        ),
        (
            "class T { get = T.n = 1; set = 2; static = 3; async = 4; static static = 5; of = 6 } return [new T(), T.static]",
            r#"[{"get":1,"set":2,"static":3,"async":4,"of":6},5]"#,
        ),
        (
            "class T { #a = T.n = 1; #b = this.#a + 1; #f = () => this.#b; #m() { return this.#f() } static { T.s = 's' } has(o) { return #a in o } sum() { return [this.#a, this.#b, this.#m(), this.#f.name] } } const t = new T(); return [t.sum(), t.has(t), t.has({}), T.s]",
            r##"[[1,2,2,"#f"],true,false,"s"]"##,
        ),
        (
            "function f() { class T { id = T.n = 1; constructor() { } m() { return this.id } } return T } const T = f(); return [String(f).includes('airlock'), String(new T().m), new T().m()]",
            r#"[false,"m() { return this.id }",1]"#,
        ),
        (
            "let s = ''; class T { id = s += 'x'; constructor(p) { s += p } } new T(1); new T(2); return s",
            "\"x1x2\"",
        ),
        (
            "class T { static n = 0; id = T.n++ } class U extends T { id2 = this.id + (U.m = 1) } class V extends U { constructor() { super(); this.v = 3 } } return [new V(), new U()]",
            r#"[{"id":0,"id2":1,"v":3},{"id":1,"id2":2}]"#,
        ),
        (
            "class E extends Error { code = E.n = (E.n ?? 0) + 1; name = 'E' } try { throw new E('m') } catch (e) { return [e.message, e.code, e.name, e instanceof E, Object.keys(e)] }",
            r#"["m",1,"E",true,["code","name"]]"#,
        ),
        (
            "const T = class Own { id = Own.n = 1; m = this.id + 1 }; const { id, m } = new T(); class Own2 { id = (() => { const Own2 = { n: 5 }; return Own2.n })(); x = Own2.n = 3 } return [id, m, new Own2(), T.name]",
            r#"[1,2,{"id":5,"x":3},"Own"]"#,
        ),
        (
            "const make = (k) => class { static n = k; id = this.constructor.n++; [Symbol.toStringTag] = 'x' }; const A = make(10), B = make(20); return [new A().id, new B().id, new A().id]",
            "[10,20,11]",
        ),
        (
            "class A {} class T extends A { x = T.n = 1; constructor(a) { super(); this.a = a } y = 2; z = T.n } return [new T(3), Object.keys(new T())]",
            r#"[{"x":1,"y":2,"z":1,"a":3},["x","y","z","a"]]"#,
        ),
        (
            "class T { m() { return 1 } id = (T.prototype.m = () => 2, T.n = this.m()) } return [new T().id, new T().m()]",
            "[2,2]",
        ),
        (
            "class T { id = T.n = 1; constructor() { return { other: this.id } } } return [new T(), T.n]",
            r#"[{"other":1},1]"#,
        ),
        (
            "const Base = class { constructor() { this.kind = new.target.name } }; class T extends Base { id = T.n = new.target ?? 'none' } return [new T(), Reflect.construct(T, [], class X {})]",
            r#"[{"kind":"T","id":"none"},{"kind":"X","id":"none"}]"#,
        ),
    ] {
        comes_to(script, expected);
    }
}
