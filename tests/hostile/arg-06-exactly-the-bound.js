// case: ARG-06
// expect: ok
// value: {"paid":250}
// calls: box.pay=1
return await box.pay({ amount: 250.0 });
