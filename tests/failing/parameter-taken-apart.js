function describe({ id, name }) {
  return `${id}: ${name}`;
}
const people = [{ id: 1, name: 'Ann' }];
return [people[0], people[1]].map((person) => describe(person));
