import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import { test } from 'node:test'
import type { StatusRecord } from '../../src/contract/execution-routes.ts'
import { history as historySchema } from '../../src/contract/schemas/execution-history.ts'
import { createManualClock } from '../../src/core/clock.ts'
import { startRingWriter } from '../../src/localnet/ring/writer-service.ts'
import { loadConfig } from '../../src/platform/config/file.ts'
import { makeTestFolder } from '../../src/platform/files/test-folder.ts'
import { systemClock } from '../../src/platform/process/clock.ts'
import { secureRandom } from '../../src/platform/process/random.ts'
import { until } from '../../src/platform/process/test-wait.ts'
import { createLogTap } from '../../src/platform/telemetry/log-tap.ts'
import { createLogger, silentLogger } from '../../src/platform/telemetry/logger.ts'
import { configSchema } from '../../src/processes/compose/config/config.ts'
import { settingsOf } from '../../src/processes/compose/config/settings.ts'
import type { Deps } from '../../src/processes/compose/process/deps.ts'
import { startExecutionProcess } from '../../src/processes/execution.ts'
import { sluiceHere } from '../support/cli/in-process.ts'
import { BARE_ENV } from '../support/cli/run.ts'
import { openStream } from '../support/execution/stream-reader.ts'

/** More than the lame-duck period, and less than the deadline of the drain: threads and sockets close in real time, which a busy machine takes longer for. */
const ENDS_WITHIN_MS = 20_000

/** The standalone process with a manual clock: how it ends, and with which code. */
async function startStandalone(folder: { file(name: string): string }, deps: Partial<Deps> = {}, nowMs = Date.now()) {
  const env = {
    SLUICE_EXECUTION__LISTEN: '127.0.0.1:0',
    SLUICE_METRICS__LISTEN: '127.0.0.1:0',
    SLUICE_EXECUTION__RING: folder.file('no-ring'),
  }
  const clock = createManualClock(nowMs)
  const loaded = await loadConfig({ schema: configSchema, env, file: undefined })
  const settings = settingsOf(loaded, folder.file('state'))
  const alone = await startExecutionProcess(settings, {
    ...{ log: silentLogger, clock, random: secureRandom, env, readSettings: async () => settings },
    ...deps,
  })
  return { ...alone, clock, ended, base: `127.0.0.1:${alone.execution.address.port}` }

  /** Advances time until the process has ended. Returns whether everything was closed in order. */
  async function ended(): Promise<boolean> {
    let end: { clean: boolean } | undefined
    void alone.lifecycle.stopped.then((stopped) => {
      end = stopped
    })
    const endMs = clock.monotonicMs() + ENDS_WITHIN_MS
    await until('the process has ended', async () => {
      if (clock.monotonicMs() < endMs) await clock.advanceAsync(100)
      return end !== undefined
    })
    return end?.clean === true
  }
}

test('standalone, a silent source ends the process with 75: clients get 1012, /health 503 for 5 s', async () => {
  using folder = makeTestFolder()
  const { clock, base, ended, exitCode } = await startStandalone(folder)
  await using client = await openStream(`ws://${base}/v1/ws`)
  await client.until(1)
  clock.advance(34_999)
  assert.equal((await fetch(`http://${base}/health`)).status, 503)
  const clean = await ended()
  assert.equal(client.closed?.code, 1012)
  assert.deepEqual([clean, exitCode()], [true, 75])
})

test('standalone, the age of the last event continues over processes: 503 at once for a dead source, 200 with the next event', async () => {
  using folder = makeTestFolder()
  const HOUR_MS = 3_600_000
  const health = async (base: string) => {
    const response = await fetch(`http://${base}/health`)
    const { result } = (await response.json()) as { result: { healthy: boolean; last_event_age_secs: number } }
    return { status: response.status, healthy: result.healthy, ageSecs: result.last_event_age_secs }
  }
  const lines: string[] = []
  const log = createLogger({ level: 'info', destination: { write: (line: string) => void lines.push(line) } })
  {
    const first = await startStandalone(folder)
    assert.deepEqual(await health(first.base), { status: 200, healthy: true, ageSecs: 0 }, 'nothing was ever seen')
    await using _writer = await startRingWriter(
      { path: folder.file('no-ring'), blockMs: 50, seed: 1 },
      { log: silentLogger, clock: systemClock },
    )
    const status = async () => (await (await fetch(`http://${first.base}/v1/status`)).json()) as StatusRecord
    await until('new events came', async () => (await status()).ring_seqno > 1000)
    first.lifecycle.stop('SIGTERM')
    assert.equal(await first.ended(), true)
  }
  const second = await startStandalone(folder, { log }, Date.now() + HOUR_MS)
  const { status, healthy, ageSecs } = await health(second.base)
  assert.deepEqual([status, healthy], [503, false])
  assert(ageSecs >= 3590 && ageSecs <= 3700, String(ageSecs))
  assert.equal(second.lifecycle.health().state, 'degraded')
  assert.doesNotMatch(lines.join(''), /recovered/)
  {
    await using _writer = await startRingWriter(
      { path: folder.file('no-ring'), blockMs: 50, seed: 2 },
      { log: silentLogger, clock: systemClock },
    )
    await until('an event came', async () => (await health(second.base)).status === 200)
    assert.equal(second.lifecycle.health().state, 'ok')
    assert.match(lines.join(''), /"part":"execution".*"msg":"recovered"/)
  }
  second.lifecycle.stop('SIGTERM')
  await second.ended()
})

test('standalone, a signal ends the process with 0', async () => {
  using folder = makeTestFolder()
  const { base, ended, lifecycle, exitCode } = await startStandalone(folder)
  await using client = await openStream(`ws://${base}/v1/ws`)
  await client.until(1)
  lifecycle.stop('SIGTERM')
  const clean = await ended()
  assert.equal((await client.untilClosed()).code, 1012)
  assert.deepEqual([clean, exitCode()], [true, 0])
})

test('standalone, the process responds to status, top, logs tail and drain', {
  timeout: 60_000,
}, async () => {
  using folder = makeTestFolder()
  const logTap = createLogTap({ write() {} })
  const { ended } = await startStandalone(folder, {
    logTap,
    log: createLogger({ level: 'info', destination: logTap }),
  })
  const ask = async (line: string): Promise<string> => {
    const { code, stdout, stderr } = await sluiceHere([...line.split(' '), '--state', folder.file('state')])
    assert.equal(code, 0, `${line}: ${stderr}`)
    return stdout
  }
  const status = JSON.parse(await ask('status --json')) as { state: string; services: { name: string }[] }
  assert.equal(status.state, 'ok')
  assert.deepEqual(
    status.services.map(({ name }) => name),
    ['execution', 'metrics'],
  )
  const top = JSON.parse(await ask('top --json')) as { execution: { clients: number } | null; sender: object | null }
  assert.deepEqual([top.execution?.clients, top.sender], [0, null])
  assert.match(await ask('logs tail --json'), /"msg":"listening".*\n.*"msg":"started"/s)
  // The command waits until the process has ended, which depends on the manual clock.
  const draining = ask('drain --yes')
  const clean = await ended()
  await draining
  assert.equal(clean, true)
})

test('a real process whose source is silent exits with 75', { timeout: 60_000 }, async () => {
  using folder = makeTestFolder()
  const child = spawn(process.execPath, [join(import.meta.dirname, '../support/execution/child.ts')], {
    env: {
      ...BARE_ENV,
      STATE_FOLDER: folder.file('state'),
      SLUICE_EXECUTION__LISTEN: '127.0.0.1:0',
      SLUICE_METRICS__LISTEN: '127.0.0.1:0',
      SLUICE_EXECUTION__RING: folder.file('no-ring'),
    },
    stdio: ['ignore', 'ignore', 'inherit'],
  })
  try {
    assert.deepEqual(await once(child, 'exit'), [75, null])
  } finally {
    child.kill('SIGKILL')
  }
})

test('standalone, /v1/history continues over processes, and the time between them is an incident', async () => {
  using folder = makeTestFolder()
  const historyOf = async (base: string) => historySchema.parse(await (await fetch(`http://${base}/v1/history`)).json())
  const startedMs = Date.now()
  await using _writer = await startRingWriter(
    { path: folder.file('no-ring'), blockMs: 50, seed: 1 },
    { log: silentLogger, clock: systemClock },
  )
  const first = await startStandalone(folder, {}, startedMs)
  await until('blocks came', async () => {
    await first.clock.advanceAsync(1000)
    return (await historyOf(first.base)).blocks.depth.some((depth) => depth !== null)
  })
  const before = await historyOf(first.base)
  first.lifecycle.stop('SIGTERM')
  assert.equal(await first.ended(), true)
  const second = await startStandalone(folder, {}, first.clock.nowMs() + 20_000)
  const { blocks, incidents } = await historyOf(second.base)
  assert.deepEqual(blocks.id.slice(0, before.blocks.id.length), before.blocks.id)
  assert.deepEqual(blocks.time_ms.slice(0, before.blocks.id.length), before.blocks.time_ms)
  const stops = incidents.filter(({ kind }) => kind === 'service_stopped')
  assert.equal(stops.length, 1)
  const [stop = assert.fail()] = stops
  assert.ok(stop.to_ms !== null && stop.to_ms - stop.from_ms >= 20_000, JSON.stringify(stop))
  second.lifecycle.stop('SIGTERM')
  await second.ended()
})
