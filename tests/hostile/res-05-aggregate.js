// case: RES-05
// expect: script_error
// name: AggregateError
await Promise.any([Promise.reject(new Error("one")), Promise.reject(new Error("two"))]);
