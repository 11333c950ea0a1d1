import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createManualClock } from '../core/clock.ts'
import { createLogger } from '../platform/telemetry/logger.ts'
import { createCustomerLog } from './customer-log.ts'

function open() {
  const clock = createManualClock()
  const lines: Record<string, unknown>[] = []
  const log = createLogger({
    level: 'info',
    destination: { write: (line: string) => lines.push(JSON.parse(line) as never) },
  })
  const customerLog = createCustomerLog({ log, clock })
  const message = () =>
    lines.splice(0).map(({ msg, subscription, limit, count }) => ({ msg, subscription, limit, count }))
  return { clock, customerLog, logged: message }
}

const refused = (subscription: string, limit: string) => ({ subscription, message: 'refused', kind: { limit } })
const line = (subscription: string, limit: string, count?: number) => ({ msg: 'refused', subscription, limit, count })

test('logs the first refusal at once and the number of the others each second, for each customer and limit', () => {
  const { clock, customerLog, logged: message } = open()
  for (let at = 0; at < 1000; at++) customerLog.log(refused('sub_1', 'unitsPerSecond'))
  customerLog.log(refused('sub_1', 'sendsPerSecond'))
  customerLog.log(refused('sub_2', 'unitsPerSecond'))
  assert.deepEqual(message(), [
    line('sub_1', 'unitsPerSecond'),
    line('sub_1', 'sendsPerSecond'),
    line('sub_2', 'unitsPerSecond'),
  ])
  clock.advance(1000)
  assert.deepEqual(message(), [line('sub_1', 'unitsPerSecond', 999)])
})

test('continuing refusals are one line per second; after a pause the next one is logged at once', () => {
  const { clock, customerLog, logged: message } = open()
  for (let second = 0; second < 3; second++) {
    for (let at = 0; at < 10; at++) customerLog.log(refused('sub_1', 'unitsPerSecond'))
    clock.advance(1000)
  }
  assert.deepEqual(
    message().map(({ count }) => count),
    [undefined, 9, 10, 10],
  )
  clock.advance(2000)
  assert.deepEqual(message(), [])
  customerLog.log(refused('sub_1', 'unitsPerSecond'))
  assert.deepEqual(message(), [line('sub_1', 'unitsPerSecond')])
})

test('tracks at most a hundred combinations; refusals above that are counted', () => {
  const { clock, customerLog, logged: message } = open()
  for (let at = 0; at < 5000; at++) customerLog.log(refused(`sub_${at}`, 'unitsPerSecond'))
  assert.equal(message().length, 100)
  clock.advance(1000)
  assert.deepEqual(
    message().map(({ count }) => count),
    [4900],
  )
})
