// case: PRS-06
// expect: script_error
import fs from "fs";
return fs;
