import assert from 'node:assert/strict'
import { once } from 'node:events'
import { test } from 'node:test'
import { Worker } from 'node:worker_threads'
import { lockCell, unlockCell } from './spin-lock.ts'

/** Cells: the lock, a number that is not changed atomically, and how far the thread is. */
const LOCK = 0
const COUNT = 1
const STATE = 2
const IN_SECTION = 1

const THREAD = `
  const { workerData } = require('node:worker_threads')
  const { module, memory, owner, work } = workerData
  import(module).then(({ lockCell, unlockCell }) => {
    const cells = new Int32Array(memory)
    if (work === 'hold') {
      lockCell(cells, ${LOCK}, owner)
      Atomics.store(cells, ${STATE}, ${IN_SECTION})
      Atomics.notify(cells, ${STATE})
      for (;;);
    }
    for (let count = 0; count < work; count++) {
      lockCell(cells, ${LOCK}, owner)
      cells[${COUNT}] = cells[${COUNT}] + 1
      unlockCell(cells, ${LOCK})
    }
  })
`

function start(memory: SharedArrayBuffer, owner: number, work: number | 'hold'): Worker {
  const module = new URL('./spin-lock.ts', import.meta.url).href
  return new Worker(THREAD, { eval: true, workerData: { module, memory, owner, work } })
}

test('threads that wait for each other never work in the section at the same time', async () => {
  const memory = new SharedArrayBuffer(16)
  const cells = new Int32Array(memory)
  const threads = [1, 2, 3].map((owner) => start(memory, owner, 100_000))
  for (const [code] of await Promise.all(threads.map((thread) => once(thread, 'exit')))) assert.equal(code, 0)
  assert.equal(cells[COUNT], 300_000)
  assert.equal(cells[LOCK], 0)
})

test('the lock of a thread that was killed in its section goes to the next one, after a second', async (t) => {
  const memory = new SharedArrayBuffer(16)
  const cells = new Int32Array(memory)
  const thread = start(memory, 7, 'hold')
  await Atomics.waitAsync(cells, STATE, 0).value
  assert.equal(cells[LOCK], 7)
  await thread.terminate()
  assert.equal(cells[LOCK], 7, 'it stays locked')
  const fromMs = performance.now()
  lockCell(cells, LOCK, 1)
  const tookMs = performance.now() - fromMs
  t.diagnostic(`${tookMs.toFixed(0)} ms`)
  assert.equal(cells[LOCK], 1)
  // A living holder must have had the time to leave its section.
  assert.ok(tookMs >= 900 && tookMs < 30_000, `${tookMs} ms`)
  unlockCell(cells, LOCK)
})
