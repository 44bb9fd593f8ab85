// case: FLO-06
// asks: box.write
// before: globalThis.kept = "a"; Symbol.for("kept").description; Array.prototype.kept = "b"; Object.prototype.kept = "c"; await box.echo({})
// expect: ok
// value: [null,null,null,false]
// why: the run before left everything that it could in its own realm
return [globalThis.kept ?? null, [].kept ?? null, ({}).kept ?? null, "kept" in globalThis];
