class Cart {
  #lines = [];
  total() {
    return this.#lines.reduce((sum, line) => sum + line.price, 0) + this.discount.amount;
  }
}
return new Cart().total();
