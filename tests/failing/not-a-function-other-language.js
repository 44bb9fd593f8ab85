const names = ['ann', 'bob'];
if (names.contains('bob')) return 'there';
