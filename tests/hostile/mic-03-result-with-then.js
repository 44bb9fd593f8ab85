// case: MIC-03
// expect: ok
// value: {"then":"a word","value":1}
// why: data whose member is called then is data
return await box.thenable({});
