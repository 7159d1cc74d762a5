exports.add = (a, b) => {
  if (a > 100) {
    return null;
  }
  return a + b;
};
exports.unused = () => {
  const first = 1;
  return first + 2;
};
