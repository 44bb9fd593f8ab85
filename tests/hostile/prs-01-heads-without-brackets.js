// case: PRS-01
// expect: script_error
// expand: yes
// why: a statement that is the body of another takes stack in a parser as a bracket does
{{"if(0)" * 1450}};
