// run with --memory 48MiB
const pages = [];
for (let page = 0; ; page++) {
  pages.push(`page ${page}: `.padEnd(500_000, '.'));
}
