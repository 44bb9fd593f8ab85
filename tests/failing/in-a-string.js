const title = "an open issue";
return "open" in title;
