const errors = [].filter(Boolean);
return errors.reduce((a, b) => a + b);
