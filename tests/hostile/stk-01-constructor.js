// case: STK-01
// expect: limit:stack | script_error | engine_fault
class A {
  constructor() {
    this.inner = new A();
  }
}
return new A();
