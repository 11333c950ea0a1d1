import assert from 'node:assert/strict'
import { test } from 'node:test'
import { envNameOf } from '../../../platform/config/env.ts'
import { makeTestFolder } from '../../../platform/files/test-folder.ts'
import { systemClock } from '../../../platform/process/clock.ts'
import { secureRandom } from '../../../platform/process/random.ts'
import { createLogger, silentLogger } from '../../../platform/telemetry/logger.ts'
import { loadSettings } from '../config/settings.ts'
import { openProcess } from './open-process.ts'

test('health is served from the first step of a start on: alive, and not ready until everything has started', async () => {
  using folder = makeTestFolder()
  const env = { SLUICE_METRICS__LISTEN: '127.0.0.1:0' }
  const settings = await loadSettings({ process: { env } }, { state: folder.path })
  const deps = { env, clock: systemClock, random: secureRandom, log: silentLogger }
  const options = { sections: ['metrics'], listeners: [], drain: { lameDuckMs: 0 } } as const
  await using context = await openProcess(settings, deps, options)
  const { host, port } = context.metricsListener.address
  const get = async (path: string) => {
    const response = await fetch(`http://${host}:${port}${path}`)
    return { status: response.status, text: await response.text() }
  }
  const starting = await get('/readyz')
  assert.equal(starting.status, 503)
  assert.equal((JSON.parse(starting.text) as { state: string }).state, 'starting')
  assert.equal((await get('/healthz')).status, 200)
  assert.match((await get('/metrics')).text, /sluice_build_info/)
  context.lifecycle.started()
  assert.equal((await get('/readyz')).status, 200)
})

test('a key with its former name is accepted, and logged with the present one', async () => {
  using folder = makeTestFolder()
  const former = envNameOf(['bundle', 'cache', 'answerBytesMax'])
  const env = { SLUICE_METRICS__LISTEN: '127.0.0.1:0', [former]: '2048' }
  const settings = await loadSettings({ process: { env } }, { state: folder.path })
  let lines = ''
  const log = createLogger({ level: 'warn', destination: { write: (line: string) => (lines += line) } })
  const deps = { env, clock: systemClock, random: secureRandom, log }
  await using _context = await openProcess(settings, deps, {
    sections: ['metrics'],
    listeners: [],
    drain: { lameDuckMs: 0 },
  })
  assert.match(lines, /"key":"bundle\.cache\.answerBytesMax","name":"bundle\.cache\.responseBytesMax"/)
})
