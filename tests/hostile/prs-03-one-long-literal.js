// case: PRS-03
// expect: limit:source
// expand: yes
return "{{"x" * 10485760}}".length;
