// case: AMB-01
// expect: ok
// seed: 7
// same twice: yes
return [Math.random(), Math.random(), crypto.randomUUID(), [...crypto.getRandomValues(new Uint8Array(4))]];
