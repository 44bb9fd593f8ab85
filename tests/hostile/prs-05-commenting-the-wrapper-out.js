// case: PRS-05
// expect: ok
// value: 1
return 1; // ){ /*
