// Not found, but written for what reads numbers of a few digits: what stands behind them decides.
log([0, 1, 9, 10, 123456789, 1234567890, 999999999, 1000000000, 2147483647, 2147483648, 4294967296, -0, -1]);
log([1.5, 1., 0.5, .5, 1e3, 1E3, 12e-1, 0x1f, 0b101, 0o17, 0XAF, 1_000, 1_0.5_0, 1n, 123456789n, 1234567890n, 0n]);
log([1..toString(), 1.0.toFixed(1), 5 .toString(), 1.5.toString(), 0..toFixed(2)]);
log([1+1, 1-1, 3*4, 7%4, 2**10, 1<2, 1>2, 1?2:3, 1&&2, 1||2, 1|2, [1,2][1], { 1: 'one', 23: 'two', 1_5: 'three' }]);
log(3 in[1, 2, 3, 4]);
log(((a = 1, b = 2) => a+b)(1,2));
log(`${1}${22}`);
label: for (let i = 0; i<3; i++) { if (i===1)continue label; log(i) }
log([1,,2].length);
switch (1) { case 1:log('one') }
log([-1, +1, ~1, !1, typeof 1, void 0, 1/2, 1
]);
