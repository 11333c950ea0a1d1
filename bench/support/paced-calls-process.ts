import { openSenderLoad } from '../../test/support/sender/load.ts'

/** The only argument of the process, as JSON. */
export type PacedCallsTask = {
  readonly url: string
  readonly token: string
  readonly connections: number
  readonly perSecond: number
  readonly seconds: number
}

/** What the process prints at its end, as JSON. */
export type PacedCallsReport = {
  readonly perSecond: number
  readonly p50Ms: number
  readonly p99Ms: number
  readonly failed: number
  /** The first few. */
  readonly failures: readonly string[]
}

const CALL = '{"jsonrpc":"2.0","id":1,"method":"getSlot","params":[]}'
const FAILURES_MAX = 5

/** Calls at a fixed rate, without waiting for responses; each latency counts from the scheduled time, so that a pause is not hidden. */
if (import.meta.main) {
  const task = JSON.parse(process.argv[2] ?? '') as PacedCallsTask
  using load = openSenderLoad(task.url, task.connections)
  const tookMs: number[] = []
  const failures: string[] = []
  const startedMs = performance.now()
  const callAt = async (dueMs: number): Promise<void> => {
    const { status, body } = await load.post(CALL, `x-token: ${task.token}\r\n`)
    tookMs.push(performance.now() - dueMs)
    if (status !== 200 || !body.includes('"result"')) failures.push(`${status} ${body}`)
  }
  const calls: Promise<void>[] = []
  for (let n = 0; n < task.perSecond * task.seconds; n++) {
    const dueMs = startedMs + (n * 1000) / task.perSecond
    const waitMs = dueMs - performance.now()
    if (waitMs > 0) await new Promise((resolve) => setTimeout(resolve, waitMs))
    calls.push(callAt(dueMs).catch((error: unknown) => void failures.push(String(error))))
  }
  await Promise.all(calls)
  const sorted = tookMs.toSorted((a, b) => a - b)
  const at = (share: number) => Number((sorted[Math.floor(sorted.length * share)] ?? 0).toFixed(1))
  const report: PacedCallsReport = {
    perSecond: Math.round(tookMs.length / ((performance.now() - startedMs) / 1000)),
    p50Ms: at(0.5),
    p99Ms: at(0.99),
    failed: failures.length,
    failures: failures.slice(0, FAILURES_MAX),
  }
  process.stdout.write(`${JSON.stringify(report)}\n`)
}
