import { createBoundedQueue } from '../../core/bounded-queue.ts'

/** Log lines of the recent past and of the future. */
export type LogSource = {
  /** The last lines, oldest first. */
  recent(): string[]
  /** Calls `read` for each line as it is written. */
  listen(read: (line: string) => void): Disposable
}

export type LogTap = LogSource & { write(line: string): void }

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
    listen(read) {
      readers.add(read)
      return { [Symbol.dispose]: () => void readers.delete(read) }
    },
  }
}

/** Lines of the sources as they are written, until the signal. A reader that falls behind gets a record with the number of lines it missed. */
export async function* followSources(sources: readonly LogSource[], signal: AbortSignal): AsyncGenerator<string> {
  const pending = createBoundedQueue<string>({ itemsMax: PENDING_LINES_MAX })
  let missed = 0
  let wake = () => {}
  const leave = () => wake()
  using listening = new DisposableStack()
  for (const source of sources) {
    listening.use(
      source.listen((line) => {
        missed += pending.pushDroppingOldest(line)
        wake()
      }),
    )
  }
  signal.addEventListener('abort', leave)
  listening.defer(() => signal.removeEventListener('abort', leave))
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
}
