// run with --limit cpu=300ms
const next = (page) => ({ more: true, page: page + 1 });
let answer = next(0);
do answer = next(answer.page); while (answer.more);
return answer;
