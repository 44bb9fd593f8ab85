// case: FLO-03
// policies: shipped
// expect: ok
// value: "unanswered"
// calls: box.send=0
// why: an error tells something too, and counts like a result
let failed = 0;
try {
  await box.fail({});
} catch {
  failed = 1;
}
return await box.send({ to: failed ? "a@corp.example" : "b@corp.example" }).catch((e) => e.code);
