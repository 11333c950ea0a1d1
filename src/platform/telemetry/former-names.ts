import type { FormerNames } from './metric-memory.ts'
import type { PrintedFamily, Sample } from './metrics-text.ts'

/**
 * The metric, and the same under its former name. Where only labels had other names, each series has them under both instead: twice, it would count double
 * in sums.
 */
export function withFormerNames(family: PrintedFamily, former: FormerNames | undefined): PrintedFamily[] {
  if (former === undefined) return [family]
  const { name, labels: names = {}, values = {} } = former
  const formerLabels = (labels: Sample['labels']) =>
    Object.fromEntries(
      Object.entries(labels).map(([label, value]) =>
        names[label] === undefined ? [label, value] : [names[label], values[value] ?? value],
      ),
    )
  if (name === undefined) {
    const both = (sample: Sample) => ({ ...sample, labels: { ...sample.labels, ...formerLabels(sample.labels) } })
    return [{ ...family, samples: family.samples.map(both) }]
  }
  const samples = family.samples.map(({ value, labels, metricName }) => ({
    value,
    labels: formerLabels(labels),
    ...(metricName === undefined ? {} : { metricName: metricName.replace(family.name, name) }),
  }))
  return [family, { ...family, name, help: `Former name of ${family.name}; removed in 0.2.`, samples }]
}
