import { existsSync, rmSync } from 'node:fs'
import { workerData } from 'node:worker_threads'
import '../../../src/execution/source/ring-thread.ts'

/** The ring reader thread with a fault: it throws when a file named after the ring appears, and removes that file. */
const { path } = (workerData as { data: { path: string } }).data
const order = `${path}.die`

setInterval(() => {
  if (!existsSync(order)) return
  rmSync(order)
  throw new Error('crashed on request')
}, 10).unref()
