// An exponential moving average without the pull towards zero at its start; gaps stay gaps.
const FEW = 40; // a curve of so few points, as a validation has, is drawn as it is

export function smooth(values, weight) {
  if (values.length < FEW) return values;
  let sum = 0;
  let mass = 0;
  return values.map((value) => {
    if (value == null) return value;
    sum = sum * weight + (1 - weight) * value;
    mass = mass * weight + (1 - weight);
    return sum / mass;
  });
}
