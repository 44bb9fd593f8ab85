// case: FLO-06
// policies: shipped
// expect: ok
// value: "unanswered"
// calls: twin.whoami=0
// why: of `twin` nobody has said anything, so it is the worst, even as the first call
return await twin.whoami({}).catch((e) => e.code);
