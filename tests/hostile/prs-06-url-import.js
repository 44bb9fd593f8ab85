// case: PRS-06
// expect: script_error
import x from "https://example.org/x.js";
export default x;
