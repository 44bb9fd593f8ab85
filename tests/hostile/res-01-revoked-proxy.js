// case: RES-01
// expect: script_error
const { proxy, revoke } = Proxy.revocable({}, {});
revoke();
return proxy;
