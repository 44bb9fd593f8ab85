const settings = { port: 80 };
return settings.port(1) + 1;
