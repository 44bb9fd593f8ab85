// case: RES-01
// expect: ok
return { small: new Uint8Array([1, 2, 3]), floats: new Float64Array([0.5]) };
