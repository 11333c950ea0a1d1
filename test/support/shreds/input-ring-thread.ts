import { parentPort, workerData } from 'node:worker_threads'
import { openInputReader } from '../../../src/shreds/decoded/input-ring.ts'

/** Reads a ring of shreds, waiting for each, until one begins with 255, and posts the first byte of each. */
const reader = openInputReader(workerData as SharedArrayBuffer)
const seen: number[] = []
parentPort?.postMessage('ready')
for (let isOpen = true; isOpen; ) {
  const count = reader.read(16, (bytes, at) => {
    if (bytes[at] === 255) isOpen = false
    else seen.push(bytes[at] as number)
  })
  if (count === 0) reader.wait(60_000)
}
parentPort?.postMessage({ seen, dropped: reader.dropped() })
