const query = "rate=100%&page=2";
return query.split("&").map((part) => decodeURIComponent(part));
