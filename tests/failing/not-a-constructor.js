const kinds = { Circle: class {} };
return new kinds.Square(2);
