const price = { valueOf() { return 10n } };
return price * 1.5;
