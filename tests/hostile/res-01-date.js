// case: RES-01
// expect: ok
// value: ["2024-02-29T12:00:00.000Z"]
return [new Date(Date.UTC(2024, 1, 29, 12))];
