class Ticket {
  constructor(title) {
    this.title = title;
  }
}
const make = (title) => Ticket(title);
return ["a", "b"].map((title) => make(title));
