class Point {
  constructor(x, y) {
    this.x = x;
    this.y = y;
  }
  plus(other) {
    return new Point(this.x + other.x, this.y + other.y);
  }
}
let sum = new Point(0, 0);
for (let i = 0; i < 100_000; i++) sum = sum.plus(new Point(i, 1));
return [sum.x, sum.y];
