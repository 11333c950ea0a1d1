import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { createHourSums } from './hour-sums.ts'

const HOUR_MS = 3_600_000
const NOW_MS = Date.UTC(2027, 0, 10, 12, 20)
const HOUR = Date.UTC(2027, 0, 10, 12)

function rig({ hours = 4, msPerHour = 0 } = {}) {
  const read: number[] = []
  let monotonic = 0
  const sums = createHourSums(
    async (hour) => {
      read.push((hour - HOUR) / HOUR_MS)
      monotonic += msPerHour
      return { calls: 1, units: 2, refused: 0 }
    },
    { hours, monotonicMs: () => monotonic },
  )
  return { read, sums }
}

describe('sums of usage by hour', () => {
  test('hours are read once, the newest first; the current one again after 15 s, the last one after a minute', async () => {
    const { read, sums } = rig()
    const first = await sums(NOW_MS)
    assert.deepEqual(read.splice(0), [0, -1, -2, -3])
    assert.deepEqual(
      first.map(({ hour }) => (hour - HOUR) / HOUR_MS),
      [-3, -2, -1, 0],
    )
    await sums(NOW_MS + 14_999)
    assert.deepEqual(read.splice(0), [])
    await sums(NOW_MS + 15_000)
    assert.deepEqual(read.splice(0), [0])
    await sums(NOW_MS + 60_000)
    assert.deepEqual(read.splice(0), [0, -1])
  })

  test('a new hour takes the place of the oldest', async () => {
    const { read, sums } = rig()
    await sums(NOW_MS)
    read.length = 0
    const next = await sums(NOW_MS + 41 * 60_000)
    assert.equal(next.at(-1)?.hour, HOUR + HOUR_MS)
    assert.deepEqual(read, [1, 0])
    assert.ok(next.every(({ usage }) => usage !== undefined))
  })

  test('a request reads for 100 ms and leaves the rest to the next ones', async () => {
    const { read, sums } = rig({ msPerHour: 60 })
    const first = await sums(NOW_MS)
    assert.deepEqual(read.splice(0), [0, -1])
    assert.deepEqual(
      first.map(({ usage }) => usage?.units),
      [undefined, undefined, 2, 2],
    )
    await sums(NOW_MS + 1000)
    assert.deepEqual(read.splice(0), [-2, -3])
  })

  test('requests that come together read once; after a failure the next one reads again', async () => {
    const { read, sums } = rig()
    await Promise.all([sums(NOW_MS), sums(NOW_MS)])
    assert.equal(read.length, 4)
    let isFailing = true
    const failing = createHourSums(
      async () => {
        if (isFailing) throw new Error('the store is away')
        return { calls: 0, units: 0, refused: 0 }
      },
      { hours: 1 },
    )
    await assert.rejects(failing(NOW_MS), /away/)
    isFailing = false
    assert.equal((await failing(NOW_MS)).length, 1)
  })
})
