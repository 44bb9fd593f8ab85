const name = 'Ann';
return name.upper();
