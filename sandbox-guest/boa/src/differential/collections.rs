//! Compares maps and sets with the engine's own.

use super::{check_all, each};

#[test]
fn maps_and_sets_are_gone_through_as_in_the_engine() {
    let kinds = [
        "const m = new Map([['a', 1], ['b', 2], ['c', 3], ['d', 4]]), add = (k) => m.set(k, 0)",
        "const m = new Set(['a', 'b', 'c', 'd']), add = (k) => m.add(k)",
        "class Mine extends Map { get(k) { return super.get(k) } }; const m = new Mine([['a', 1], [NaN, 2], [0, 3], ['d', 4]]), add = (k) => m.set(k, 0)",
        "const m = new Set([-0, NaN, undefined, 'a']), add = (k) => m.add(k)",
        "const m = new Map(), add = (k) => m.set(k, 0)",
    ];
    let uses = [
        "[...m]",
        "[[...m.keys()], [...m.values()], [...m.entries()]]",
        "[m.delete('a'), m.delete('x'), m.delete(NaN), m.delete(-0), m.delete(undefined), m.size, [...m]]",
        "{ const out = []; m.forEach((v, k, all) => { out.push(v, k, all === m); if (k === 'b') { m.delete('c'); m.delete('a'); add('z') } }); return [out, [...m]] }",
        "{ const out = []; for (const x of m) { out.push(x); m.delete('a'); if (out.length < 6) add('n' + out.length) } return [out, m.size] }",
        "{ const out = []; for (const x of m.keys()) { out.push(x); m.delete(x); if (out.length < 9) add(x) } return [out, m.size] }",
        "{ const i = m.keys(); const out = [i.next(), i.next()]; m.delete('a'); m.delete('b'); out.push(i.next(), i.next(), i.next()); add('late'); out.push(i.next()); return [out, [...m]] }",
        "{ const i = m.values(), j = m.entries(); i.next(); j.next(); m.delete('b'); i.next(); m.delete('a'); add('b'); return [[...i], [...j], [...m]] }",
        "{ const i = m[Symbol.iterator](); return [typeof i.next, String(i), Object.keys(i), i[Symbol.iterator]() === i, Object.getPrototypeOf(i) === Object.getPrototypeOf(m.keys()), Object.getOwnPropertyNames(Object.getPrototypeOf(i))] }",
        "{ const i = m.keys(); m.clear(); return [i.next(), i.next(), m.size, m.clear()] }",
        "m.forEach()",
        "m.forEach(5)",
        "m.forEach(function (v, k) { this.push(k) }, [])",
        "{ const seen = []; m.forEach(function (v, k) { this.push(k) }, seen); return seen }",
        "m.forEach(() => { throw new RangeError('x') })",
        "m.keys().next.call({})",
        "m.keys().next.call([].keys())",
        "new Map().keys().next.call(m.keys())",
        "new Set().keys().next.call(m.keys())",
        "m.keys.call({})",
        "m.delete.call(new WeakMap(), {})",
        "m.clear.call([])",
        "[Array.from(m), new Set(m).size, Math.max(...m.keys()), Object.fromEntries(new Map([...m].map((x) => [x, 1])))]",
        "{ const [a, b] = m; const [c, ...d] = m.values(); return [a, b, c, d] }",
        "[Map.prototype.entries === Map.prototype[Symbol.iterator], Set.prototype.keys === Set.prototype.values, Set.prototype.values === Set.prototype[Symbol.iterator], Set.prototype.keys.name]",
        "m.union ? [...m.union(new Set([1])), ...m.difference(new Set(['a']))] : 0",
        "{ const i = m.keys(); return [i.map ? [...i.map((k) => typeof k)] : 0, i.next()] }",
    ];
    let scripts: Vec<String> = uses
        .iter()
        .map(|use_| match use_.starts_with('{') {
            true => format!("KIND; {use_}"),
            false => format!("KIND; return {use_}"),
        })
        .collect();
    let scripts: Vec<&str> = scripts.iter().map(String::as_str).collect();
    check_all(each(&scripts, &[("KIND", &kinds)]));
}

/// Each iteration visits each member once and in order, whatever is deleted, added and rebuilt
/// meanwhile.
#[test]
fn many_who_go_through_at_once_see_what_they_see_in_the_engine() {
    let kinds = [
        "const m = new Map(), add = (k) => m.set(k, k)",
        "const m = new Set(), add = (k) => m.add(k)",
    ];
    let seeds = ["7", "23", "99", "1234", "5", "31337"];
    check_all(each(
        &[
            "KIND; let chance = SEED, next = 0; const out = [], open = []; \
           const any = (n) => { chance = chance * 16807 % 2147483647; return chance % n }; \
           for (let i = 0; i < 200; i++) add(next++); \
           for (let i = 0; i < 1500; i++) { const n = any(12); \
             if (n < 3) add(next++); \
             else if (n < 5) out.push(m.delete(any(next))); \
             else if (n < 8) m.delete(m.keys().next().value); \
             else if (n === 8) open.push([m.keys(), m.values(), m.entries()][any(3)]); \
             else if (n < 11 && open.length > 0) { const at = any(open.length), it = open[at].next(); out.push(it.value); if (it.done) open.splice(at, 1) } \
             else { let c = 0; for (const k of m.keys()) { if (c++ > 3) break; out.push(k); if (any(3) === 0) m.delete(k) } } } \
           return [out, [...m.keys()], open.map((it) => [...it])]",
        ],
        &[("KIND", &kinds), ("SEED", &seeds)],
    ));
}
