/** Counts of a histogram: `counts[i]` values up to `bounds[i]` and above the bound before; the last count is of those above all bounds. */
export type BucketCounts = { readonly bounds: readonly number[]; readonly counts: readonly number[] }

/**
 * The value below which this share of the counted values lies, as Prometheus computes it: values are spread evenly within a bucket, and what is above all
 * bounds counts as the last bound. Undefined where nothing is counted.
 */
export function bucketQuantile(share: number, { bounds, counts }: BucketCounts): number | undefined {
  const total = counts.reduce((sum, count) => sum + count, 0)
  if (total === 0) return undefined
  const rank = share * total
  let below = 0
  for (const [at, bound] of bounds.entries()) {
    const count = counts[at] ?? 0
    if (count > 0 && below + count >= rank) {
      const from = bounds[at - 1] ?? 0
      return from + ((bound - from) * Math.max(0, rank - below)) / count
    }
    below += count
  }
  return bounds.at(-1)
}
