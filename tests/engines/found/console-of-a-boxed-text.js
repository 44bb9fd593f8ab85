console.log(Object("s"), Object.assign(Object("ab"), { more: 1 }), typeof globalThis[Symbol.toStringTag]);
