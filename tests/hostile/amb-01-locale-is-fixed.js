// case: AMB-01
// expect: ok
// same twice: yes
return [(1234.5).toLocaleString(), ["b", "a", "C"].sort((x, y) => x.localeCompare(y)), "I".toLocaleLowerCase("tr")];
