// case: PRS-06
// expect: limit:time
// limits: run_wall_ms_max=400
// calls: box.slow=1
// why: the call lasts longer than the deadline, also when 64 runs share it and have 16 times longer
return await box.slow({ ms: 8000 });
