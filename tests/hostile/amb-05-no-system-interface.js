// case: AMB-05
// expect: ok
// value: []
return ["fd_write", "path_open", "environ_get", "sock_send", "proc_exit", "random_get", "process", "Deno", "Bun", "require", "fetch", "XMLHttpRequest", "WebSocket", "os", "std", "scriptArgs", "print", "load", "read", "quit", "$262", "gc", "$boa"].filter(
  (name) => name in globalThis,
);
