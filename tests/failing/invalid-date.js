const when = new Date('yesterday');
return when.toISOString();
