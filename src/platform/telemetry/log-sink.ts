import { fstatSync, writeSync } from 'node:fs'

export type LogSinkOptions = {
  fd: number
  /** The reader is the journal of systemd, which takes the priority of a line from its beginning. */
  isJournal?: boolean
  /** For tests: writes bytes and returns how many were taken. */
  write?: (fd: number, bytes: Uint8Array) => number
}

export type LogSink = {
  write(line: string): void
  /** Lines that could not be written, since start. */
  lost(): number
}

/** Attempts to write to a full pipe, 5 ms apart, before the line is dropped. */
const TRIES_MAX = 20
const TRY_AGAIN_MS = 5

/**
 * Writes complete lines to a descriptor. A full disk, a closed pipe or a stalled reader never stops the service: the line is
 * counted as lost, and the next line that is written is preceded by a record with the number of lost lines. A partly written
 * line is finished before the next starts.
 */
export function createLogSink({ fd, isJournal = false, write = writeSync }: LogSinkOptions): LogSink {
  let rest: Uint8Array | undefined
  let lost = 0
  let unreported = 0
  let stalled = false

  function put(bytes: Uint8Array): boolean {
    let at = 0
    for (let tries = 0; at < bytes.length; ) {
      try {
        at += write(fd, at === 0 ? bytes : bytes.subarray(at))
        tries = 0
      } catch (error) {
        tries += 1
        const full = (error as NodeJS.ErrnoException).code === 'EAGAIN'
        // Once the reader is known to be stalled, later lines do not wait for it.
        if (full && !stalled && tries < TRIES_MAX) {
          pause()
          continue
        }
        stalled = true
        rest = at === 0 ? undefined : bytes.slice(at)
        return at > 0
      }
    }
    stalled = false
    return true
  }

  const putLine = (line: string): boolean => put(Buffer.from(isJournal ? `${journalPriority(line)}${line}` : line))

  function flushRest(): boolean {
    if (!rest) return true
    const pending = rest
    rest = undefined
    if (put(pending) && !rest) return true
    rest ??= pending
    return false
  }

  function reportLost(): boolean {
    const record = { level: 'warn', time: new Date().toISOString(), lost: unreported, msg: 'log lines were lost' }
    const reported = putLine(`${JSON.stringify(record)}\n`)
    if (reported) unreported = 0
    return reported
  }

  return {
    write(line) {
      if (!flushRest()) {
        lost += 1
        unreported += 1
        return
      }
      if ((unreported === 0 || reportLost()) && !rest && putLine(line)) return
      lost += 1
      unreported += 1
    },
    lost: () => lost,
  }
}

/** True where systemd has connected the descriptor to its journal: it gives device and inode of that socket to the process. */
export function isJournal(fd: number, env: NodeJS.ProcessEnv): boolean {
  const { JOURNAL_STREAM: stream } = env
  if (stream === undefined) return false
  try {
    const { dev, ino } = fstatSync(fd)
    return stream === `${dev}:${ino}`
  } catch {
    return false
  }
}

/** `sd-daemon(3)`: a line that begins with `<4>` is a warning. The journal removes it. */
const PRIORITIES: Readonly<Record<string, string>> = {
  fatal: '<2>',
  error: '<3>',
  warn: '<4>',
  info: '<6>',
  debug: '<7>',
  trace: '<7>',
}

/** The level is the first field of each record. */
function journalPriority(line: string): string {
  const level = /^\{"level":"([a-z]+)"/.exec(line)?.[1] ?? 'info'
  return PRIORITIES[level] ?? '<6>'
}

function pause(): void {
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, TRY_AGAIN_MS)
}
