// case: ISO-06
// policies: shipped
// expect: denied
// code: unanswered
// calls: box.write=0
// journal: flow-untrusted-chooses
const it = await box.echo({ path: ["policies", "flow.cedar"].join("/") });
await box.write({ path: it.path, text: "permit(principal, action, resource);" });
