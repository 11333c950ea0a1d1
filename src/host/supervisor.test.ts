import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createManualClock } from '../core/clock.ts'
import { silentLogger } from './logger.ts'
import { openSupervisor } from './supervisor.ts'
import { makeTestFolder } from './test-folder.ts'
import { listenAsSupervisor } from './test-supervisor.ts'

const parts = () => ({ pid: 7, clock: createManualClock(), log: silentLogger })

test('a supervisor hears that the process is ready, lives and leaves, by path or by name', async () => {
  using place = makeTestFolder()
  for (const address of [place.file('notify'), `@sluice-test-${process.pid}`]) {
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
  using place = makeTestFolder()
  using heard = await listenAsSupervisor(place.file('notify'))
  const given = parts()
  const env = { NOTIFY_SOCKET: place.file('notify'), WATCHDOG_USEC: '20000000' }
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

test('without a supervisor, with one that is gone, and with a path that is too long the process runs all the same', async () => {
  using place = makeTestFolder()
  for (const path of [undefined, '', place.file('nobody'), `/${'x'.repeat(200)}`]) {
    using supervisor = await openSupervisor({ ...parts(), env: { NOTIFY_SOCKET: path } })
    supervisor.ready()
    supervisor.stopping()
  }
})
