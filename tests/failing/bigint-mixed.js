const total = 10n;
const share = 3;
return String(total / share);
