// case: GRA-06
// asks: box.write | box.echo
// given: up to 9 of box.write in session where {"path":"a"}
// expect: ok
// value: "unanswered"
// calls: box.echo=0
return await box.echo({ path: "a" }).catch((e) => e.code);
