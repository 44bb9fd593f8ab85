const tree = { name: 'root', children: [] };
tree.children.push(tree);
function depth(node) {
  const below = node.children.map((child) => depth(child));
  return 1 + Math.max(0, ...below);
}
return depth(tree);
