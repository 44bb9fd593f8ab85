const text = '{"items": [1, 2]}';
return text.items.length;
