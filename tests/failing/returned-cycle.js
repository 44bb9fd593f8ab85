const folder = { name: "all", files: [] };
folder.files.push(folder);
return folder;
