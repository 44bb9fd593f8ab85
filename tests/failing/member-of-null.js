const config = { user: null, port: 80 };
return config.user.name;
