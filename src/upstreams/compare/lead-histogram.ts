/** In milliseconds. */
export type LeadSummary = {
  readonly mean: number
  readonly min: number
  readonly p50: number
  readonly p90: number
  readonly p99: number
  readonly max: number
}

/** Buckets of a tenfold range: a quantile is exact to 2.3 %. */
const PER_DECADE = 100
/** A microsecond; what is shorter is zero. */
const SHORTEST_MS = 0.001
/** From a microsecond to 10,000 s; what is longer is in the last bucket. */
const BUCKETS = 10 * PER_DECADE

/** Leads in milliseconds, positive or negative, in memory that does not grow with their number. */
export class LeadHistogram {
  /** From the most negative to the most positive; zero is in the middle. */
  readonly #counts = new Float64Array(2 * BUCKETS + 1)
  #count = 0
  #sum = 0
  #min = Number.POSITIVE_INFINITY
  #max = Number.NEGATIVE_INFINITY

  add(leadMs: number): void {
    const at = bucketOf(leadMs)
    this.#counts[at] = (this.#counts[at] as number) + 1
    this.#count += 1
    this.#sum += leadMs
    this.#min = Math.min(this.#min, leadMs)
    this.#max = Math.max(this.#max, leadMs)
  }

  summary(): LeadSummary | undefined {
    if (this.#count === 0) return undefined
    return {
      mean: this.#sum / this.#count,
      min: this.#min,
      p50: this.#quantile(0.5),
      p90: this.#quantile(0.9),
      p99: this.#quantile(0.99),
      max: this.#max,
    }
  }

  #quantile(share: number): number {
    let left = Math.ceil(share * this.#count)
    let at = 0
    for (; at < this.#counts.length - 1; at++) {
      left -= this.#counts[at] as number
      if (left <= 0) break
    }
    return Math.min(this.#max, Math.max(this.#min, middleOf(at)))
  }
}

function bucketOf(leadMs: number): number {
  const length = Math.abs(leadMs)
  if (length < SHORTEST_MS) return BUCKETS
  const distance = Math.min(BUCKETS, 1 + Math.floor(Math.log10(length / SHORTEST_MS) * PER_DECADE))
  return leadMs > 0 ? BUCKETS + distance : BUCKETS - distance
}

function middleOf(bucket: number): number {
  const distance = Math.abs(bucket - BUCKETS)
  if (distance === 0) return 0
  const length = SHORTEST_MS * 10 ** ((distance - 0.5) / PER_DECADE)
  return bucket > BUCKETS ? length : -length
}
