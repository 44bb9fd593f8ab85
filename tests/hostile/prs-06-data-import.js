// case: PRS-06
// expect: script_error
import x from "data:text/javascript,export default 1";
export default x;
