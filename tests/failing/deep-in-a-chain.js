const page = { data: { list: { nodes: [1, 2] } } };
return page.data.lists.nodes.length;
