import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createManualClock } from '../../core/clock.ts'
import { createSeededRandom } from '../../core/random.ts'
import { makeTestFolder } from '../../platform/files/test-folder.ts'
import { openReportStore } from './store.ts'

test('a file that is there is opened without a draft of a new one: there may be no space for it', async () => {
  using folder = makeTestFolder()
  const clock = createManualClock()
  const file = folder.file('reports.db')
  {
    await using store = await openReportStore(file, { clock, random: createSeededRandom(1), create: true })
    await store.add([], [{ hour: 0, packets: [1] }])
  }
  const noDraft = (): never => assert.fail('a draft was named')
  await using store = await openReportStore(file, { clock, random: { bytes: noDraft, float: noDraft }, create: true })
  const [delays] = await store.delays({ fromMs: 0 })
  assert.equal(delays?.packets[0], 1)
})
