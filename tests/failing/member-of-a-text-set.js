"use strict";
const name = "ada";
name.age = 36;
return name;
