import type { Socket } from 'node:net'

export type LineReaderDeps = {
  onLine(line: string): void
  /** A line exceeded the maximum; no further line is read. */
  onTooLong(): void
}

/** Splits the received data into lines. Empty lines are skipped. */
export function readLines(socket: Socket, options: { lineBytesMax: number }, deps: LineReaderDeps): void {
  let pending: Buffer[] = []
  let pendingBytes = 0
  let stopped = false
  socket.on('data', (chunk: Buffer) => {
    let rest = chunk
    while (!stopped && rest.length > 0) {
      const end = rest.indexOf(0x0a)
      const part = end === -1 ? rest : rest.subarray(0, end)
      pending.push(part)
      pendingBytes += part.length
      if (pendingBytes > options.lineBytesMax) {
        stopped = true
        pending = []
        deps.onTooLong()
        return
      }
      if (end === -1) return
      const line = Buffer.concat(pending).toString('utf8').trim()
      pending = []
      pendingBytes = 0
      rest = rest.subarray(end + 1)
      if (line !== '') deps.onLine(line)
    }
  })
}
