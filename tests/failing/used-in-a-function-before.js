const first = pick();
const names = ["a", "b"];
function pick() {
  return names[0];
}
return first;
