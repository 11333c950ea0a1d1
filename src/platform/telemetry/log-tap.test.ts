import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createLogTap, followSources } from './log-tap.ts'
import { createLogger } from './logger.ts'

test('a follower gets lines as they are written; the sink gets all; recent() has the last thousand', async () => {
  const written: string[] = []
  const tap = createLogTap({ write: (line) => written.push(line) })
  const log = createLogger({ level: 'info', destination: tap })
  for (let n = 0; n < 1500; n++) log.info({ n }, 'before')
  assert.equal(written.length, 1500)
  assert.equal(tap.recent().length, 1000)
  assert.match(tap.recent()[0] ?? '', /"n":500/)

  const leave = new AbortController()
  const seen: string[] = []
  const following = (async () => {
    for await (const line of followSources([tap], leave.signal)) seen.push(line)
  })()
  log.info('one')
  await new Promise((resolve) => setImmediate(resolve))
  log.info('two')
  await new Promise((resolve) => setImmediate(resolve))
  assert.deepEqual(
    seen.map((line) => (JSON.parse(line) as { msg: string }).msg),
    ['one', 'two'],
  )
  leave.abort()
  await following
})

test('a follower that does not read gets the number of lines it missed', async () => {
  const tap = createLogTap({ write() {} })
  const leave = new AbortController()
  const lines = followSources([tap], leave.signal)
  const first = lines.next()
  tap.write('first\n')
  assert.equal((await first).value, 'first\n')
  for (let n = 0; n < 10_005; n++) tap.write(`${n}\n`)
  assert.match((await lines.next()).value as string, /"lost":5,/)
  assert.equal((await lines.next()).value, '5\n')
  leave.abort()
  assert.equal((await lines.next()).done, true)
})
