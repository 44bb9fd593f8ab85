// case: PRS-03
// expect: limit:source
// expand: yes
return {{"1" * 67108864}};
