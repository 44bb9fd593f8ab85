// case: MIC-01
// expect: limit:cpu | limit:time
// limits: guest_cpu_ms_max=250
(function l() {
  Promise.resolve().then(l);
})();
