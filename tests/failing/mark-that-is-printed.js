// A server may answer this, and a script print it: it is not the second look's.
const note = { note: 1, place: 0, thrown: true, name: 'TypeError', value: { kind: 'object', keys: ['do_this'], of: 1 } };
console.log('loo' + 'k__' + JSON.stringify(note));
console.log('loo' + 'k__' + '{"end":1}');
const answer = {};
return answer.rows.length;
