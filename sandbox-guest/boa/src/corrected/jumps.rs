//! Tests of jumps that the uncorrected engine gets wrong: the results are those of the
//! specification.

/// The beginning of each of these scripts.
const BEFORE: &str = "const log = []; const quiet = () => { try { throw 0 } catch {} };
const each = (name, ...of) => ({ [Symbol.iterator]() { let at = 0; return {
  next: () => { log.push('next ' + name); return { value: of[at], done: at++ >= of.length } },
  return: () => { log.push('close ' + name); quiet(); return {} } } } });
";

#[track_caller]
fn comes_to(script: &str, expected: &str) {
    super::comes_to(&format!("{BEFORE}{script}"), expected);
}

#[test]
fn an_error_of_a_catch_outlives_its_finally() {
    for (script, expected) in [
        (
            "try { try { throw 'a' } catch (e) { throw e + 'b' } finally { quiet() } } catch (e) { return e }",
            "\"ab\"",
        ),
        (
            "const f = () => { try { throw 'a' } catch { throw 'b' } finally { quiet() } }; try { f() } catch (e) { return e }",
            "\"b\"",
        ),
        (
            "const f = async () => { try { await Promise.reject('a') } catch (e) { throw e + 'b' } finally { await null; quiet() } }; return await f().catch((e) => e)",
            "\"ab\"",
        ),
        (
            "function* f() { try { yield 1; throw 'a' } catch (e) { throw e + 'b' } finally { quiet(); yield 2 } } const it = f(); try { return [it.next().value, it.next().value, it.next()] } catch (e) { return e }",
            "\"ab\"",
        ),
        (
            "async function* f() { try { yield 1 } catch (e) { throw e + 'b' } finally { quiet(); yield 2; log.push('end') } } const it = f(); await it.next(); const two = await it.throw('a'); return [two.value, await it.next().catch((e) => e), log]",
            r#"[2,"ab",["end"]]"#,
        ),
        (
            "try{try{throw 1}catch({message}){throw 2}finally{quiet();log.push('f')}}catch(e){log.push(e)}finally{log.push('g')} return log",
            r#"["f",2,"g"]"#,
        ),
        (
            "for (const x of [1, 2, 3]) { try { if (x === 1) throw x; if (x === 2) continue; break } catch { log.push('c'); continue } finally { quiet(); log.push(x) } } return log",
            r#"["c",1,2,3]"#,
        ),
        (
            "const f = (x) => { try { if (x) throw x; return 'try' } catch { return 'catch' } finally { quiet(); if (x > 1) return 'finally' } }; return [f(0), f(1), f(2)]",
            r#"["try","catch","finally"]"#,
        ),
        (
            "const f = () => { try { null.x } catch (e) { throw e } finally { try { throw 1 } catch { } finally { quiet() } } }; try { f() } catch (e) { return e.name }",
            "\"TypeError\"",
        ),
        (
            "const o = { try: 1, catch: 2, finally() { return 3 }, get() { try { return o.try } catch { } finally { quiet() } } }; return [o.get(), o.catch, o.finally()]",
            "[1,2,3]",
        ),
    ] {
        comes_to(script, expected);
    }
}

#[test]
fn a_break_closes_what_it_leaves_and_nothing_else() {
    for (script, expected) in [
        (
            "for (const a of [1, 2]) { out: for (const b of [1, 2]) for (const c of [1, 2]) { log.push([a, b, c].join('')); if (c === 1) break out } } return log",
            r#"["111","211"]"#,
        ),
        (
            "out: for (const a of each('a', 1, 2)) for (const b of each('b', 1, 2)) { break out } return log",
            r#"["next a","next b","close b","close a"]"#,
        ),
        (
            "out: { for (const a of each('a', 1)) for (const b of each('b', 1)) break out\nlog.push('not here') } return log",
            r#"["next a","next b","close b","close a"]"#,
        ),
        (
            "for (const a of each('a', 1, 2)) out: while (true) { for (const b of each('b', 1)) if (b) break out; else log.push('no') } return log",
            r#"["next a","next b","close b","next a","next b","close b","next a"]"#,
        ),
        (
            "out: for (const a of each('a', 1, 2)) { try { for (const b of each('b', 1)) { try { break out } finally { log.push('f') } } } finally { log.push('g') } } return log",
            r#"["next a","next b","f","close b","g","close a"]"#,
        ),
        (
            "for (const a of [1, 2, 3]) { out: { for (const b of each('b', 1)) { if (a === 1) break out; if (a === 2) continue; break } if (a === 3) break; log.push('end' + a); continue } log.push('left' + a) } return log",
            r#"["next b","close b","left1","next b","next b","end2","next b","close b"]"#,
        ),
        (
            "for (const a of [1, 2]) { switch (a) { default: out: if (a) { for (const b in { x: 1 }) { if (a === 1) break out; } if (a === 2) break; } log.push(a) } log.push('s') } return log",
            r#"[1,"s","s"]"#,
        ),
        (
            "async function f() { out: for await (const a of each('a', 1, 2)) for await (const b of each('b', 1, 2)) { break out } } await f(); return log",
            r#"["next a","next b","close b","close a"]"#,
        ),
        (
            "one: for (const a of each('a', 1)) two: for (const b of each('b', 1)) three: for (const c of each('c', 1)) { if (a) break two; break one }\nreturn log",
            r#"["next a","next b","next c","close c","close b","next a"]"#,
        ),
        (
            "one: two: for (const a of each('a', 1)) { break one } return log",
            r#"["next a","close a"]"#,
        ),
        (
            "out: for (const a of each('a', 1)) for (const b of [1]) { switch (b) { case a ? 1 : 2: break out; case 3: } } return log",
            r#"["next a","close a"]"#,
        ),
        (
            "const f = () => { out: for (const a of each('a', 1)) { for (const b of each('b', 1)) { if (b) return 'r'; break out } } }; return [f(), log, String(f)]",
            r#"["r",["next a","next b","close b","close a"],"() => { out: for (const a of each('a', 1)) { for (const b of each('b', 1)) { if (b) return 'r'; break out } } }"]"#,
        ),
        (
            "let s = '/'; out: for (const a of [1]) for (const b of [4]) { const r = /[/}]break out/.test('}break out') ? b / 2 / 1 : `${`}`}`; s += r; break out }\nreturn s",
            "\"/2\"",
        ),
        (
            "const add = (n) => { let s = 'a'; out: for (const x of [1]) for (const y of [1]) if (n) { s += n; break out } else s += 'b'\nreturn s }; return [add(0), add(1)]",
            r#"["ab","a1"]"#,
        ),
    ] {
        comes_to(script, expected);
    }
}

#[test]
fn a_jump_out_of_two_finallies_goes_where_it_says() {
    for (script, expected) in [
        (
            "const f = (a) => { for (const x of [1, 2]) { try { try { if (a) continue; return 'r' + x } finally { log.push('i') } } finally { log.push('o') } } return 'end' }; return [f(0), f(1), log, String(f).includes('airlock')]",
            r#"["r1","end",["i","o","i","o","i","o"],false]"#,
        ),
        (
            "const f = (a) => { out: for (const x of each('x', 1, 2)) for (const y of [1, 2]) try { try { if (a === 0) break out; if (a === 1) continue; else if (a === 2) break; else return } finally { quiet() } } catch { } finally { log.push(x + '' + y) }\nreturn 'end' }; return [0, 1, 2, 3].map((a) => [f(a), log.splice(0)])",
            r#"[["end",["next x","11","close x"]],["end",["next x","11","12","next x","21","22","next x"]],["end",["next x","11","next x","21","next x"]],[null,["next x","11","close x"]]]"#,
        ),
        (
            "const f = async (a) => { do { try { try { try { if (a) break; return await [a, { b: 1 }] // why\n } finally { await 1; log.push('1') } } finally { if (a === 2) return 'two'; log.push('2') } } finally { log.push('3') } } while (false); return 'end' }; return [await f(0), await f(1), await f(2), log]",
            r#"[[0,{"b":1}],"end","two",["1","2","3","1","2","3","1","3"]]"#,
        ),
        (
            "const f = (a) => { switch (a) { case 0: try { try { if (a) return () => 1; break } finally { log.push('i') } } finally { log.push('o') } case 1: try { try { for (;;) { try { if (a) break; continue } finally { if (a) log.push('f') } } return (function () {}).name } finally { } } finally { } } return 'end' }; return [f(0), f(1), log]",
            r#"["end","",["i","o","f"]]"#,
        ),
        (
            "function* f(a) { for (const x of [1, 2]) { try { try { if ((yield x) === a) continue; return 'r' in { r: 1 } } finally { yield 'i' } } finally { yield 'o' } } } const all = (a) => { const it = f(a), got = []; for (let at = it.next(); ; at = it.next(7)) { got.push(at.value ?? null); if (at.done) return got } }; return [all(7), all(8)]",
            r#"[[1,"i","o",2,"i","o",null],[1,"i","o",true]]"#,
        ),
    ] {
        comes_to(script, expected);
    }
}

#[test]
fn an_error_in_a_loop_through_names_leaves_the_loops_around_alone() {
    for (script, expected) in [
        (
            "for (const a of [1, 2]) { try { for (const b in { x: 1 }) throw b } catch (e) { log.push(a + e) } } return log",
            r#"["1x","2x"]"#,
        ),
        (
            "for (const a in { x: 1, y: 2 }) { try { for (let b in [1, 2], { p: 1 }) { null[a] } } catch (e) { log.push(a + e.name) } } return log",
            r#"["xTypeError","yTypeError"]"#,
        ),
        (
            "for (const a of each('a', 1)) { for (const b in { x: 1, y: 2 }) { if (b === 'y') break; log.push(b) } } return log",
            r#"["next a","x","next a"]"#,
        ),
        (
            "const o = { a: 1, b: 2, c: 3 }; for (const x of [1]) for (const k in o) { log.push(k); delete o.b } for (const x of [1]) for (const k in null) log.push('no'); return log",
            r#"["a","c"]"#,
        ),
        (
            "const base = { up: 1 }; for (const x of [1]) { for (var k in Object.create(base, { own: { enumerable: true, value: 1 } })) log.push(k); for (const k of 'a' in { a: 1 } ? ['in'] : []) log.push(k) } return [log, k]",
            r#"[["own","up","in"],"up"]"#,
        ),
        (
            "const f = function () { for (const x of [1]) for (const k in { a: 1 }) return k }; return [f(), String(f)]",
            r#"["a","function () { for (const x of [1]) for (const k in { a: 1 }) return k }"]"#,
        ),
    ] {
        comes_to(script, expected);
    }
}
