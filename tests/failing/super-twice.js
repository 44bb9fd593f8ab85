class Base {}
class Job extends Base {
  constructor() {
    super();
    super();
  }
}
return new Job();
