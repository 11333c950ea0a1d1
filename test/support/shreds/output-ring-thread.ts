import { workerData } from 'node:worker_threads'
import { openOutputWriter } from '../../../src/shreds/decoded/output-ring.ts'

/**
 * Writes so many records of different lengths, each of one byte value. The last one has 255; it is written again and again, a byte longer each time,
 * for a reader that has lost it.
 */
const { memory, records } = workerData as { memory: SharedArrayBuffer; records: number }
const writer = openOutputWriter(memory)
for (let n = 0; n < records - 1; n++) writer.write([new Uint8Array(1 + ((n * 7919) % 3000)).fill(n % 255)])
let length = 1
setInterval(() => writer.write([new Uint8Array(length++).fill(255)]), 5)
