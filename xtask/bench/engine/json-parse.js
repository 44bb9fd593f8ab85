const row = '{"id":1,"name":"user 1","tags":["a","b"],"address":{"city":"Bern","zip":3001},"ok":true,"ms":12.75}';
const text = "[" + new Array(8_000).fill(row).join(",") + "]";
let seen = 0;
for (let turn = 0; turn < 3; turn++) seen += JSON.parse(text).length;
return seen;
