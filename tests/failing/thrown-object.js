const fail = () => { throw { status: 404, path: '/a' }; };
fail();
