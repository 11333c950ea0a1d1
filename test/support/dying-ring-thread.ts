import { existsSync, rmSync } from 'node:fs'
import { workerData } from 'node:worker_threads'
import '../../src/execution/source/ring-thread.ts'

/** The thread that reads the ring, with a flaw: it throws when a file named after the ring appears, and takes that away. */
const { path } = (workerData as { data: { path: string } }).data
const order = `${path}.die`

setInterval(() => {
  if (!existsSync(order)) return
  rmSync(order)
  throw new Error('died as it was told to')
}, 10).unref()
