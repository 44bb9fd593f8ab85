// case: MIC-03
// expect: ok | script_error | deadlock
// limits: run_wall_ms_max=800
Promise.prototype.then = function () {
  return "no";
};
return await box.echo({ n: 1 });
