import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createIngestActivity } from './ingest-activity.ts'

test('ingest is active while any of its work runs, and a short time after', async () => {
  let nowMs = 0
  const activity = createIngestActivity(() => nowMs, { lingerMs: 20 })
  assert.equal(activity.isActive(), false)
  const [first, second] = [Promise.withResolvers<string>(), Promise.withResolvers<string>()]
  const [one, two] = [activity.run(() => first.promise), activity.run(() => second.promise)]
  nowMs = 1000
  first.resolve('one')
  assert.equal(await one, 'one')
  nowMs = 2000
  assert.equal(activity.isActive(), true)
  second.reject(new Error('failed'))
  await assert.rejects(two, /failed/)
  nowMs = 2019
  assert.equal(activity.isActive(), true)
  nowMs = 2020
  assert.equal(activity.isActive(), false)
})
