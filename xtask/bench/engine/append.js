let text = "";
for (let i = 0; i < 100_000; i++) text += "0123456789";
return text.length;
