type Row<T> = { value: T };
function first<T>(rows: Row<T>[]): T { return rows[0].value; }
const empty: Row<number>[] = [];
return first<number>(empty) satisfies number;
