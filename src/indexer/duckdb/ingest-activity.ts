/** Whether blocks are being decoded or written. */
export type IngestActivity = {
  isActive(): boolean
  /** Runs a piece of the work of ingest. */
  run<Result>(work: () => Result | Promise<Result>): Promise<Result>
}

/** The parent sends the next block or batch within this time if it has one. */
const LINGER_MS = 20

export function createIngestActivity(
  nowMs: () => number = () => performance.now(),
  { lingerMs = LINGER_MS }: { readonly lingerMs?: number } = {},
): IngestActivity {
  let running = 0
  let endedMs = Number.NEGATIVE_INFINITY
  return {
    isActive: () => running > 0 || nowMs() - endedMs < lingerMs,
    async run(work) {
      running++
      try {
        return await work()
      } finally {
        running--
        endedMs = nowMs()
      }
    },
  }
}
