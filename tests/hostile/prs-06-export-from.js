// case: PRS-06
// expect: script_error
export { readFile as default } from "fs";
