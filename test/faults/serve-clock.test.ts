import assert from 'node:assert/strict'
import { globSync, writeFileSync } from 'node:fs'
import { test } from 'node:test'
import { until } from '../../src/platform/process/test-wait.ts'
import { temporaryFolder } from '../support/cli/run.ts'
import { openStream } from '../support/execution/stream-reader.ts'
import { startServedGateway } from '../support/gateway/served.ts'
import { startSteadyCalls } from '../support/gateway/steady-calls.ts'
import { startFakeNode } from './fake-node.ts'

/** A real process whose wall clock libfaketime moves; its monotonic clock continues. */

const LIBRARY = globSync('/usr/lib/{*/,}faketime/libfaketime.so.1')[0]
const HOUR_SECONDS = 3600
const DAY_SECONDS = 24 * HOUR_SECONDS
/** Longer than any month, so that the wall clock is in another one. */
const MONTH_SECONDS = 40 * DAY_SECONDS
/** The calendar of the quota reads the clock every second; without a delay it would accept a jump at the second reading. */
const LOOKED_MS = 3500
/** Applied one after another; the last one restores the real time. */
const OFFSETS = [HOUR_SECONDS, -HOUR_SECONDS, DAY_SECONDS, -DAY_SECONDS, MONTH_SECONDS, -MONTH_SECONDS, 0]

const METERED_PLAN = `
[plans.metered]
unitsPerSecond = "unlimited"
sendsPerSecond = 100
unitsPerMonth = 1000000
wsConnections = 10
wsSubscriptions = 100
grpcStreams = 1
grpcAccountsPerStream = 10
`

type Whoami = { month: { used: number; limit: number }; budget: { limit: number; remaining: number } }

test('F10, R9: wall clock jumps of an hour, a day and a month, forward and back, end no connection and reset no quota', {
  skip: LIBRARY === undefined && 'no libfaketime',
}, async () => {
  await using node = await startFakeNode()
  await using position = await temporaryFolder()
  const clockFile = position.file('clock')
  const setClock = (seconds: number) => writeFileSync(clockFile, `${seconds < 0 ? '' : '+'}${seconds}\n`)
  setClock(0)
  await using gateway = await startServedGateway([{ name: 'a', rpc: node.rpc }], {
    config: METERED_PLAN,
    env: {
      SLUICE_EXECUTION__ENABLED: 'true',
      SLUICE_EXECUTION__SIMULATED: 'true',
      LD_PRELOAD: LIBRARY ?? '',
      FAKETIME_TIMESTAMP_FILE: clockFile,
      FAKETIME_NO_CACHE: '1',
      DONT_FAKE_MONOTONIC: '1',
    },
  })
  const tokenFrom = (text: string) => /slc_[0-9A-Za-z]{38}/.exec(text)?.[0] ?? ''
  const made = await gateway.sluice(
    ...['sub', 'create', 'metered', '--customer', 'acme', '--plan', 'metered', '--print-token'],
  )
  // The token before the rotation ends in two hours: an hour's jump leaves it valid, a day's does not.
  const retiring = tokenFrom(made.stdout)
  const rotated = await gateway.sluice('token', 'rotate', 'metered', '--grace', '2h', '--yes', '--print-token')
  assert.equal(rotated.code, 0, rotated.stderr)
  const token = tokenFrom(rotated.stdout)
  const whoami = async (given: string) => {
    const response = await fetch(`${gateway.url}/v1/whoami`, { headers: { 'x-token': given } })
    const text = await response.text()
    return { status: response.status, text, ...(response.status === 200 ? (JSON.parse(text) as Whoami) : undefined) }
  }
  await until('the rotation is known', async () => (await whoami(token)).status === 200)

  const execution = `http://${await gateway.running.address('execution')}`
  const wallSeconds = async () => {
    const { headers } = await fetch(`${gateway.metrics}/healthz`)
    return Date.parse(headers.get('date') ?? '') / 1000
  }
  await using stream = await openStream(`${execution.replace('http', 'ws')}/v1/ws`)
  await stream.until(5)
  await using calls = startSteadyCalls(gateway.url, token)
  let usedBefore = 0
  for (const offset of OFFSETS) {
    setClock(offset)
    await until('the process sees the jump', async () => {
      return Math.abs((await wallSeconds()) - Date.now() / 1000 - offset) < HOUR_SECONDS / 2
    })
    const [responded, frames, jumpedMs] = [calls.responded, stream.frames.length, performance.now()]
    await until(
      'calls and the stream continue',
      () => calls.responded > responded + 20 && stream.frames.length > frames + 10,
    )
    if (Math.abs(offset) === MONTH_SECONDS)
      await until('the calendar has read the clock', () => performance.now() - jumpedMs > LOOKED_MS)
    const now = await whoami(token)
    assert.equal(now.status, 200, now.text)
    const used = now.month?.used ?? 0
    assert.ok(used > usedBefore, `the used quota was reset at ${offset}: ${usedBefore}, then ${used}`)
    usedBefore = used
    assert.equal((await whoami(retiring)).status, offset >= DAY_SECONDS ? 401 : 200, `the retiring token at ${offset}`)
    assert.equal((await fetch(`${execution}/health`)).status, 200)
    assert.equal((await fetch(`${gateway.metrics}/readyz`)).status, 200)
  }
  await calls.stop()
  assert.deepEqual(calls.failed, [])
  assert.equal(stream.closed, undefined)
  const seqs = stream.frames.map(({ seq }) => seq).filter((seq) => seq > 0)
  assert(seqs.every((seq, at) => at === 0 || seq >= (seqs[at - 1] as number)))
  assert.equal((await whoami(token)).month?.used, calls.responded, 'every call was counted once')
  assert.equal(await gateway.running.stop(), 0)
})
