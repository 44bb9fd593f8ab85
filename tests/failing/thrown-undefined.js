await null;
throw undefined;
