function* pages(all) {
  for (const page of all) yield page.rows.length;
}
return [...pages([{ rows: [] }, { row: [] }])];
