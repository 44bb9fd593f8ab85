// case: MIC-03
// expect: ok | limit:cpu | limit:time | script_error | deadlock
// limits: guest_cpu_ms_max=250 run_wall_ms_max=800
// why: every object becomes a thenable; no host object is ever handed to it
const seen = [];
Object.prototype.then = function (resolve) {
  delete Object.prototype.then;
  seen.push(Object.keys(this));
  resolve("taken over");
};
const answer = await box.echo({ n: 1 });
return [answer, seen];
