// case: FLO-03
// policies: shipped
// expect: script_error
// error: yes
// labels: private | private:box | untrusted
// why: an error says as much as a value
const it = await box.echo({ word: "yes" });
throw new Error(it.word);
