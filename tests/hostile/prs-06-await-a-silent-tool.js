// case: PRS-06
// expect: limit:time
// limits: run_wall_ms_max=400
// calls: box.slow=1
return await box.slow({ ms: 60000 });
