import { readdirSync, readFileSync } from 'node:fs'

/** Samples of a process's resident memory. */
export type ProcessStats = {
  sample(atMs: number): void
  /** Least-squares slope of the resident memory since `fromMs`, in MiB per minute. */
  slopeMiBPerMinute(fromMs: number): number
  readonly lastMiB: number
}

export function createProcessStats(pid: number): ProcessStats {
  const samples: { readonly atMs: number; readonly mib: number }[] = []
  return {
    sample: (atMs) => void samples.push({ atMs, mib: residentMiB(pid) }),
    slopeMiBPerMinute(fromMs) {
      const used = samples.filter(({ atMs }) => atMs >= fromMs)
      if (used.length < 2) return 0
      const meanX = mean(used.map(({ atMs }) => atMs))
      const meanY = mean(used.map(({ mib }) => mib))
      let over = 0
      let under = 0
      for (const { atMs, mib } of used) {
        over += (atMs - meanX) * (mib - meanY)
        under += (atMs - meanX) ** 2
      }
      return (over / under) * 60_000
    },
    get lastMiB() {
      return samples.at(-1)?.mib ?? 0
    },
  }
}

function mean(values: readonly number[]): number {
  return values.reduce((sum, value) => sum + value, 0) / values.length
}

function residentMiB(pid: number): number {
  const status = readFileSync(`/proc/${pid}/status`, 'utf8')
  return Number(/VmRSS:\s+(\d+) kB/.exec(status)?.[1] ?? 0) / 1024
}

export function openDescriptors(pid: number): number {
  return readdirSync(`/proc/${pid}/fd`).length
}
