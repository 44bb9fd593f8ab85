class Page {
  constructor(rows) {
    this.first = rows[0].id;
  }
}
const open = () => new Page(undefined);
return open();
