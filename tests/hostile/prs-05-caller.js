// case: PRS-05
// expect: ok | script_error
// why: nobody sees the frames above it
function inner() {
  return inner.caller === undefined || inner.caller === null;
}
return inner();
