// case: FLO-03
// policies: shipped
// expect: ok
// value: 1
// labels: private | private:box | untrusted
// why: one bit of it is enough for the value to be what was read
const it = await box.echo({ secret: true });
return it.secret ? 1 : 0;
