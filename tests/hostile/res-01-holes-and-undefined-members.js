// case: RES-01
// expect: ok
// value: [1,null,null,{"kept":null}]
return [1, , undefined, { gone: undefined, kept: null }];
