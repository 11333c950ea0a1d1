import assert from 'node:assert/strict'
import { once } from 'node:events'
import { test } from 'node:test'
import { Worker } from 'node:worker_threads'
import { loadMemoryRelease } from './memory-release.ts'
import { until } from './test-wait.ts'

test('collects garbage at once, without exposing gc to other code', async () => {
  const { collect, trim } = await loadMemoryRelease()
  const gone = new FinalizationRegistry<string>(() => (isGone = true))
  let isGone = false
  gone.register({ held: Buffer.alloc(1000) }, 'it')
  await until('it is collected', () => {
    collect()
    trim?.()
    return isGone
  })
  assert.equal('gc' in globalThis, false)
})

test('collects garbage also without the foreign-function interface', async () => {
  const { collect, trim } = await loadMemoryRelease(() => Promise.reject(new Error('does not load')))
  collect()
  assert.equal(trim, undefined)
})

test('threads that load at the same time all get a collection of their own heap, and later ones do not see gc', async () => {
  const url = new URL('./memory-release.ts', import.meta.url).href
  const code = `
    const { loadCollect } = await import(${JSON.stringify(url)})
    const { parentPort } = await import('node:worker_threads')
    parentPort.postMessage('started')
    await new Promise((resolve) => parentPort.once('message', resolve))
    for (let at = 0; at < 20; at++) loadCollect()()
    parentPort.postMessage('collected')`
  const start = (source: string) => new Worker(new URL(`data:text/javascript,${encodeURIComponent(source)}`))
  const workers = Array.from({ length: 4 }, () => start(code))
  // A thread that starts while another loads has gc from its start.
  await Promise.all(workers.map((worker) => once(worker, 'message')))
  for (const worker of workers) worker.postMessage('go')
  await Promise.all(workers.map((worker) => once(worker, 'message')))
  await Promise.all(workers.map((worker) => worker.terminate()))
  const later = start(`import { parentPort } from 'node:worker_threads'; parentPort.postMessage('gc' in globalThis)`)
  assert.deepEqual(await once(later, 'message'), [false])
  await later.terminate()
})
