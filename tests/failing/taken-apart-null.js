const page = { cursor: null };
const { next } = page.cursor;
return next;
