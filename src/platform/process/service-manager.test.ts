import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { test } from 'node:test'
import { createManualClock } from '../../core/clock.ts'
import { makeTestFolder } from '../files/test-folder.ts'
import { silentLogger } from '../telemetry/logger.ts'
import { openSupervisor } from './service-manager.ts'
import { listenAsSupervisor } from './test-service-manager.ts'

const parts = () => ({ pid: 7, clock: createManualClock(), log: silentLogger })

test('a supervisor hears that the process is ready, lives and leaves, by path or by name', async () => {
  using position = makeTestFolder()
  for (const address of [position.file('notify'), `@sluice-test-${process.pid}`]) {
    using heard = await listenAsSupervisor(address)
    const given = parts()
    using supervisor = await openSupervisor({
      ...given,
      env: { NOTIFY_SOCKET: address, WATCHDOG_USEC: '20000000', WATCHDOG_PID: '7' },
    })
    supervisor.ready()
    given.clock.advance(21_000)
    supervisor.stopping()
    assert.deepEqual(heard.all(), ['READY=1', 'WATCHDOG=1', 'WATCHDOG=1', 'STOPPING=1'])
  }
})

test('a watchdog of another process is not answered, and after the end nothing is said', async () => {
  using position = makeTestFolder()
  using heard = await listenAsSupervisor(position.file('notify'))
  const given = parts()
  const env = { NOTIFY_SOCKET: position.file('notify'), WATCHDOG_USEC: '20000000' }
  {
    using _other = await openSupervisor({ ...given, env: { ...env, WATCHDOG_PID: '8' } })
    given.clock.advance(60_000)
  }
  {
    using _own = await openSupervisor({ ...given, env })
  }
  given.clock.advance(60_000)
  assert.deepEqual(heard.all(), [])
  assert.equal(given.clock.pendingTimers(), 0)
})

test('before it is ready nothing is said, and a supervisor that does not read holds nothing up', {
  timeout: 60_000,
}, async () => {
  using position = makeTestFolder()
  using heard = await listenAsSupervisor(position.file('notify'))
  const given = parts()
  const lost: unknown[] = []
  const log = { ...silentLogger, warn: (fields: unknown) => void lost.push(fields) }
  const env = { NOTIFY_SOCKET: position.file('notify'), WATCHDOG_USEC: '20000000' }
  using supervisor = await openSupervisor({ ...given, log, env })
  given.clock.advance(60_000)
  assert.deepEqual(heard.all(), [])
  supervisor.ready()
  // net.unix.max_dgram_qlen of unix(7): so many messages wait, and one more.
  const waitingMax = Number(readFileSync('/proc/sys/net/unix/max_dgram_qlen', 'utf8')) + 1
  for (let beats = 0; beats < waitingMax + 2; beats++) given.clock.advance(10_000)
  const came = [...heard.all()]
  assert.equal(came[0], 'READY=1')
  assert.ok(
    lost.length >= 1 && came.length + lost.length === waitingMax + 3,
    `${came.length} came, ${lost.length} lost`,
  )
  given.clock.advance(10_000)
  assert.equal(heard.all().length, came.length + 1, 'who reads again hears again')
})

for (const isLeaving of [false, true]) {
  const then = isLeaving ? 'unless the process is on its way out by then' : 'and then of the watchdog'
  test(`a supervisor that had no room for it is told again that the process is ready, ${then}`, {
    timeout: 60_000,
  }, async () => {
    using position = makeTestFolder()
    using heard = await listenAsSupervisor(position.file('notify'))
    const env = { NOTIFY_SOCKET: position.file('notify'), WATCHDOG_USEC: '2000000' }
    const [other, given] = [parts(), parts()]
    using noisy = await openSupervisor({ ...other, env })
    noisy.ready()
    const waitingMax = Number(readFileSync('/proc/sys/net/unix/max_dgram_qlen', 'utf8')) + 1
    for (let beats = 0; beats < waitingMax; beats++) other.clock.advance(1000)
    using supervisor = await openSupervisor({ ...given, env })
    supervisor.ready()
    const before = heard.all().length
    if (isLeaving) supervisor.stopping()
    given.clock.advance(1000)
    given.clock.advance(1000)
    assert.deepEqual(heard.all().slice(before), isLeaving ? ['STOPPING=1'] : ['READY=1', 'WATCHDOG=1'])
  })
}

test('without a supervisor, with one that is gone, and with a path that is too long the process runs all the same', async () => {
  using position = makeTestFolder()
  for (const path of [undefined, '', position.file('nobody'), `/${'x'.repeat(200)}`]) {
    using supervisor = await openSupervisor({ ...parts(), env: { NOTIFY_SOCKET: path } })
    supervisor.ready()
    supervisor.stopping()
  }
})
