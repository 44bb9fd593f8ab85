class Base {}
class Job extends Base {
  constructor(name) {
    this.name = name;
    super();
  }
}
return new Job("a");
