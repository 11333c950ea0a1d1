import { writeSync } from 'node:fs'

export type LogSinkOptions = {
  fd: number
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
export function createLogSink({ fd, write = writeSync }: LogSinkOptions): LogSink {
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
    const reported = put(Buffer.from(`${JSON.stringify(record)}\n`))
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
      if ((unreported === 0 || reportLost()) && !rest && put(Buffer.from(line))) return
      lost += 1
      unreported += 1
    },
    lost: () => lost,
  }
}

function pause(): void {
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, TRY_AGAIN_MS)
}
