import assert from 'node:assert/strict'
import { test } from 'node:test'
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
