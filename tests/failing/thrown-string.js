const step = 2;
if (step > 1) {
  throw 'gave up at step ' + step;
}
