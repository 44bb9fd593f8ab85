const answer = 'Sorry, no result';
const parsed = JSON.parse(answer);
return parsed.items;
