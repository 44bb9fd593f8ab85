// case: GRA-06
// asks: clash.*
// given: up to 9 of clash.get_sum in run
// expect: ok
// value: ["get_sum"]
// calls: clash.get_sum=1 clash.get-sum=0 clash.get.sum=0
// questions: 2
// why: what the script calls them decides nothing; the server's own names do
const told = [];
for (const member of Object.keys(clash)) await clash[member]({}).then((it) => told.push(it.name), () => {});
return told;
