// case: FLO-03
// policies: shipped
// expect: ok
// value: 2
// labels: none
// why: the other side of it: what reads nothing is marked with nothing
return 1 + 1;
