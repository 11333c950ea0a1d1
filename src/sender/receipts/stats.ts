import type { Receipt } from './receipt.ts'

/** Counts since the start of the process. */
export type SenderStats = {
  readonly accepted: number
  readonly landed: number
  /** Landed with an error: no tip was paid. */
  readonly failed: number
  readonly expired: number
  readonly ended: number
  readonly pending: number
  readonly tipLamports: string
  /** What became of transactions and is not in the tip ledger. */
  readonly tipEventsLost: number
  readonly paths: readonly PathStats[]
}

export type PathStats = {
  readonly path: string
  /** Settled transactions that it took. */
  readonly taken: number
  readonly landed: number
  /** `landed / taken`; null before the first. */
  readonly landingRate: number | null
  /** Time from accepting to landing, over the last SAMPLES_MAX. */
  readonly p50Ms: number | null
  readonly p95Ms: number | null
}

export type Stats = {
  accepted(): void
  settled(receipt: Receipt): void
  /** Its settled state is replaced: a fork reverted it, or it landed after it had expired or ended. */
  replaced(receipt: Receipt): void
  read(pending: number): Omit<SenderStats, 'tipEventsLost'>
}

const SAMPLES_MAX = 1024

type PathCount = { taken: number; landed: number; samplesMs: number[]; at: number }

/** Which path got a transaction into its block is not observable, so every path that took it is counted. */
export function createStats(pathNames: readonly string[]): Stats {
  const paths = new Map<string, PathCount>(
    pathNames.map((name) => [name, { taken: 0, landed: 0, samplesMs: [], at: 0 }]),
  )
  /** A replaced one is counted back only if this process has counted it: it may have landed before a restart. */
  const counted = new WeakSet<Receipt>()
  const counts = { accepted: 0, landed: 0, failed: 0, expired: 0, ended: 0 }
  let tipLamports = 0n

  function count(receipt: Receipt, by: 1 | -1): void {
    const { state, landed, tip } = receipt
    if (landed !== undefined) {
      counts.landed += by
      if (landed.error !== null) counts.failed += by
      else tipLamports += BigInt(by) * (tip?.lamports ?? 0n)
    } else if (state === 'expired' || state === 'ended') counts[state] += by
    for (const name of pathsThatTook(receipt)) {
      const path = paths.get(name)
      if (path === undefined) continue
      path.taken += by
      if (landed === undefined) continue
      path.landed += by
      if (by === 1) {
        path.samplesMs[path.at] = landed.unixMs - receipt.acceptedUnixMs
        path.at = (path.at + 1) % SAMPLES_MAX
      }
    }
  }

  return {
    accepted: () => void (counts.accepted += 1),
    settled(receipt) {
      counted.add(receipt)
      count(receipt, 1)
    },
    replaced(receipt) {
      if (counted.has(receipt)) count(receipt, -1)
    },
    read: (pending) => ({
      ...counts,
      pending,
      tipLamports: tipLamports.toString(),
      paths: [...paths].map(([path, { taken, landed, samplesMs }]) => {
        const sorted = samplesMs.toSorted((a, b) => a - b)
        return {
          path,
          taken,
          landed,
          landingRate: taken === 0 ? null : landed / taken,
          p50Ms: quantile(sorted, 0.5),
          p95Ms: quantile(sorted, 0.95),
        }
      }),
    }),
  }
}

/** The paths that took the transaction at least once. */
export function pathsThatTook({ attempts }: Receipt): Set<string> {
  return new Set(attempts.filter(({ response }) => response === 'taken').map(({ path }) => path))
}

function quantile(sorted: readonly number[], share: number): number | null {
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? null
}
