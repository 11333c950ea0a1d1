import { createBoundedQueue } from '../../core/bounded-queue.ts'

export type LogTap = {
  write(line: string): void
  /** The last lines, oldest first. */
  recent(): string[]
  /** Lines as they are written, until the signal. A reader that falls behind gets a record with the number of lines it missed. */
  follow(signal: AbortSignal): AsyncIterable<string>
}

const RECENT_LINES_MAX = 1000
const PENDING_LINES_MAX = 10_000

/** Copies log lines between the logger and its sink, for `logs tail`. The logger has masked secrets in them. */
export function createLogTap(sink: { write(line: string): unknown }): LogTap {
  const recent = createBoundedQueue<string>({ itemsMax: RECENT_LINES_MAX })
  const readers = new Set<(line: string) => void>()

  return {
    write(line) {
      sink.write(line)
      recent.pushDroppingOldest(line)
      for (const read of readers) read(line)
    },
    recent: () => [...recent],
    async *follow(signal) {
      const pending = createBoundedQueue<string>({ itemsMax: PENDING_LINES_MAX })
      let missed = 0
      let wake = () => {}
      const read = (line: string) => {
        missed += pending.pushDroppingOldest(line)
        wake()
      }
      const leave = () => wake()
      readers.add(read)
      signal.addEventListener('abort', leave)
      try {
        while (!signal.aborted) {
          // The oldest lines are dropped, so the gap is before the next line.
          if (missed > 0) {
            yield `${JSON.stringify({ level: 'warn', lost: missed, msg: 'this reader missed lines' })}\n`
            missed = 0
          }
          const line = pending.shift()
          if (line !== undefined) yield line
          else
            await new Promise<void>((resolve) => {
              wake = resolve
            })
        }
      } finally {
        readers.delete(read)
        signal.removeEventListener('abort', leave)
      }
    },
  }
}
