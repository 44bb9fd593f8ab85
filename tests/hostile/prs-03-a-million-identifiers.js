// case: PRS-03
// expect: limit:source
// expand: yes
let a = 0;
{{"a;" * 1000000}}
