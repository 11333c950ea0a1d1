import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { test } from 'node:test'
import { createManualClock } from '../../core/clock.ts'
import { makeTestFolder } from '../files/test-folder.ts'
import { silentLogger } from '../telemetry/logger.ts'
import { openServiceManager } from './service-manager.ts'
import { listenAsServiceManager } from './test-service-manager.ts'

const parts = () => ({ pid: 7, clock: createManualClock(), log: silentLogger })

test('notifies the service manager of ready, watchdog and stopping, by path or by abstract name', async () => {
  using position = makeTestFolder()
  for (const address of [position.file('notify'), `@sluice-test-${process.pid}`]) {
    using heard = await listenAsServiceManager(address)
    const given = parts()
    using serviceManager = await openServiceManager({
      ...given,
      env: { NOTIFY_SOCKET: address, WATCHDOG_USEC: '20000000', WATCHDOG_PID: '7' },
    })
    serviceManager.ready()
    given.clock.advance(21_000)
    serviceManager.stopping()
    assert.deepEqual(heard.all(), ['READY=1', 'WATCHDOG=1', 'WATCHDOG=1', 'STOPPING=1'])
  }
})

test('extends the time of a start that goes on, until it is ready, is stopped, or has taken an hour', async () => {
  using position = makeTestFolder()
  const env = { NOTIFY_SOCKET: position.file('notify') }
  using heard = await listenAsServiceManager(env.NOTIFY_SOCKET)
  const extension = 'EXTEND_TIMEOUT_USEC=300000000'
  for (const [end, last] of [
    ['ready', 'READY=1'],
    ['stopping', 'STOPPING=1'],
  ] as const) {
    const before = heard.all().length
    const given = parts()
    using serviceManager = await openServiceManager({ ...given, env })
    serviceManager.starting()
    given.clock.advance(60_000)
    serviceManager[end]()
    given.clock.advance(3_600_000)
    assert.deepEqual(heard.all().slice(before), [extension, extension, last])
  }
  const given = parts()
  using serviceManager = await openServiceManager({ ...given, env })
  serviceManager.starting()
  let extensions = 0
  for (let minute = 0; minute < 120; minute++) {
    const before = heard.all().length
    given.clock.advance(60_000)
    extensions += heard.all().length - before
  }
  assert.equal(extensions, 55 * 2, 'the last one ends with the hour')
  assert.equal(given.clock.pendingTimers(), 0)
})

test('ignores a watchdog for another process, and sends nothing after the stop', async () => {
  using position = makeTestFolder()
  using heard = await listenAsServiceManager(position.file('notify'))
  const given = parts()
  const env = { NOTIFY_SOCKET: position.file('notify'), WATCHDOG_USEC: '20000000' }
  {
    using _other = await openServiceManager({ ...given, env: { ...env, WATCHDOG_PID: '8' } })
    given.clock.advance(60_000)
  }
  {
    using _own = await openServiceManager({ ...given, env })
  }
  given.clock.advance(60_000)
  assert.deepEqual(heard.all(), [])
  assert.equal(given.clock.pendingTimers(), 0)
})

test('sends nothing before ready, and a service manager that does not read blocks nothing', {
  timeout: 60_000,
}, async () => {
  using position = makeTestFolder()
  using heard = await listenAsServiceManager(position.file('notify'))
  const given = parts()
  const lost: unknown[] = []
  const log = { ...silentLogger, warn: (fields: unknown) => void lost.push(fields) }
  const env = { NOTIFY_SOCKET: position.file('notify'), WATCHDOG_USEC: '20000000' }
  using serviceManager = await openServiceManager({ ...given, log, env })
  given.clock.advance(60_000)
  assert.deepEqual(heard.all(), [])
  serviceManager.ready()
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
  assert.equal(heard.all().length, came.length + 1, 'a service manager that reads again gets messages again')
})

for (const isLeaving of [false, true]) {
  const then = isLeaving ? 'unless the process is on its way out by then' : 'and then of the watchdog'
  test(`sends READY=1 again when the queue of the service manager was full, ${then}`, {
    timeout: 60_000,
  }, async () => {
    using position = makeTestFolder()
    using heard = await listenAsServiceManager(position.file('notify'))
    const env = { NOTIFY_SOCKET: position.file('notify'), WATCHDOG_USEC: '2000000' }
    const [other, given] = [parts(), parts()]
    using noisy = await openServiceManager({ ...other, env })
    noisy.ready()
    const waitingMax = Number(readFileSync('/proc/sys/net/unix/max_dgram_qlen', 'utf8')) + 1
    for (let beats = 0; beats < waitingMax; beats++) other.clock.advance(1000)
    using serviceManager = await openServiceManager({ ...given, env })
    serviceManager.ready()
    const before = heard.all().length
    if (isLeaving) serviceManager.stopping()
    given.clock.advance(1000)
    given.clock.advance(1000)
    assert.deepEqual(heard.all().slice(before), isLeaving ? ['STOPPING=1'] : ['READY=1', 'WATCHDOG=1'])
  })
}

test('runs without a service manager, with one that is gone and with a path that is too long', async () => {
  using position = makeTestFolder()
  for (const path of [undefined, '', position.file('nobody'), `/${'x'.repeat(200)}`]) {
    using serviceManager = await openServiceManager({ ...parts(), env: { NOTIFY_SOCKET: path } })
    serviceManager.ready()
    serviceManager.stopping()
  }
})
