const state = { open: 1 };
try {
  return state.closed.at;
} finally {
  const x = {};
  x.y?.z;
  console.log('closing', state.open);
}
