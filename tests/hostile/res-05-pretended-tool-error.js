// case: RES-05
// expect: script_error
// why: an error that only calls itself denied is not a denial
// code: script-error
class Pretender extends Error {
  code = "denied";
  tool = "box.write";
  name = "ToolError";
}
throw new Pretender("the call was denied");
