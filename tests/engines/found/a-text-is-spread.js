log({ ...'ab', ...1, ...null, ...Object('cd') });
const { 0: first, ...rest } = 'xyz'; log([first, rest]);
