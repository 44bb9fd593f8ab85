const empty = {};
return empty.first.second;
