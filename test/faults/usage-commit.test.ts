import assert from 'node:assert/strict'
import { once } from 'node:events'
import { connect, createServer, type Socket } from 'node:net'
import { join } from 'node:path'
import { test } from 'node:test'
import { Calendar } from '../../src/access/quota/calendar.ts'
import { startUsage } from '../../src/access/usage/service.ts'
import { openUsageSpool } from '../../src/access/usage/spool.ts'
import { CommitInDoubt } from '../../src/platform/db/sql.ts'
import { systemClock } from '../../src/platform/process/clock.ts'
import { until } from '../../src/platform/process/test-wait.ts'
import { silentLogger } from '../../src/platform/telemetry/logger.ts'
import { addCustomer, startEngines } from '../support/store/engines.ts'

/** What happens to the next commit that is sent to the server. */
type Fate = 'passes' | 'is-answered-in-vain' | 'never-arrives'

/** A proxy between the store and its server. Cuts the connection at a commit, before the commit or before its reply arrives. */
async function startCuttingProxy(serverPort: number) {
  const sockets = new Set<Socket>()
  const proxy = { fate: 'passes' as Fate, cuts: 0 }
  const server = createServer((near) => {
    const far = connect(serverPort, '127.0.0.1')
    let isDeaf = false
    const cut = () => {
      proxy.cuts++
      proxy.fate = 'passes'
      near.destroy()
      far.destroy()
    }
    near.on('data', (piece) => {
      if (proxy.fate === 'passes' || !piece.includes('COMMIT')) return void far.write(piece)
      if (proxy.fate === 'never-arrives') return cut()
      isDeaf = true
      far.write(piece)
    })
    far.on('data', (piece) => (isDeaf ? cut() : near.write(piece)))
    for (const socket of [near, far]) {
      sockets.add(socket)
      socket.on('error', () => {})
      socket.on('close', () => {
        sockets.delete(socket)
        near.destroy()
        far.destroy()
      })
    }
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  return Object.assign(proxy, {
    port: (server.address() as { port: number }).port,
    async [Symbol.asyncDispose]() {
      for (const socket of sockets) socket.destroy()
      await new Promise((resolve) => void server.close(resolve))
    },
  })
}

test('usage is counted once, whether a commit or its reply was lost', async () => {
  await using engines = await startEngines()
  await using bench = await engines.bench('postgres')
  await using proxy = await startCuttingProxy(engines.postgres.port)
  const { location } = bench.options
  assert.ok(location.engine === 'postgres')
  const url = location.url.replace(`:${engines.postgres.port}/`, `:${proxy.port}/`)
  await using store = await bench.open({ location: { ...location, url } })
  await using usage = startUsage({ store, calendar: new Calendar(systemClock), clock: systemClock, log: silentLogger })
  const meter = usage.createMeter('sub_1', 'tok_1')

  let units = 0
  for (const fate of ['passes', 'is-answered-in-vain', 'never-arrives', 'is-answered-in-vain'] as const) {
    await usage.flush()
    const { cuts } = proxy
    usage.countAdmitted(meter, 'rpc', 7)
    units += 7
    proxy.fate = fate
    await usage.flush()
    // Counting continues while the outcome of the commit is unknown.
    usage.countAdmitted(meter, 'rpc', 1)
    units += 1
    await until(`the cut happened: ${fate}`, () => fate === 'passes' || proxy.cuts > cuts)
    await until('all is written', async () => {
      await usage.flush()
      return usage.state().waitingRows === 0 && usage.state().failing === undefined
    })
    const booked = await store.usage({ subscriptionId: 'sub_1' })
    assert.deepEqual(
      booked.map((row) => row.units),
      [units],
      fate,
    )
  }
  assert.equal(proxy.cuts, 3)
})

test('a change whose commit had no reply is in doubt, and made or not as a whole', async () => {
  await using engines = await startEngines()
  await using bench = await engines.bench('postgres')
  await using proxy = await startCuttingProxy(engines.postgres.port)
  const { location } = bench.options
  assert.ok(location.engine === 'postgres')
  const url = location.url.replace(`:${engines.postgres.port}/`, `:${proxy.port}/`)
  await using store = await bench.open({ location: { ...location, url } })
  for (const [fate, isMade] of [
    ['is-answered-in-vain', true],
    ['never-arrives', false],
  ] as const) {
    const { seq } = await store.auditHead()
    proxy.fate = fate
    await assert.rejects(addCustomer(store, fate), CommitInDoubt)
    // The server may still be at work on what it got.
    if (isMade) await until('the change was made', async () => (await store.auditHead()).seq === seq + 1)
    assert.equal((await store.find('customers', { name: fate })).length, isMade ? 1 : 0)
  }
  await addCustomer(store, 'later')
})

test('usage is counted once when the process ends after a commit whose reply was lost, or that never arrived', async () => {
  await using engines = await startEngines()
  await using bench = await engines.bench('postgres')
  await using proxy = await startCuttingProxy(engines.postgres.port)
  const { location } = bench.options
  assert.ok(location.engine === 'postgres')
  const url = location.url.replace(`:${engines.postgres.port}/`, `:${proxy.port}/`)
  await using store = await bench.open({ location: { ...location, url } })
  const open = async () => {
    const stack = new AsyncDisposableStack()
    const spool = stack.use(await openUsageSpool(join(bench.folder, 'usage-spool'), { log: silentLogger }))
    const calendar = new Calendar(systemClock)
    // Each process is left without closing it, as by a kill; its timer never runs.
    const clock = { ...systemClock, setRepeating: () => ({ cancel() {}, [Symbol.dispose]() {} }) }
    const usage = startUsage({ store, calendar, clock, log: silentLogger, spool })
    return { usage, kill: () => stack.disposeAsync() }
  }
  let units = 0
  for (const fate of ['is-answered-in-vain', 'never-arrives'] as const) {
    const { usage, kill } = await open()
    usage.countAdmitted(usage.createMeter('sub_1', 'tok_1'), 'rpc', 7)
    units += 7
    proxy.fate = fate
    await usage.flush()
    assert.ok(usage.state().failing !== undefined && usage.state().spooledRows > 0)
    await kill()
    const next = await open()
    await until('the next process has written it', async () => {
      await next.usage.flush()
      return next.usage.state().waitingRows === 0
    })
    await next.kill()
    const booked = await store.usage({ subscriptionId: 'sub_1' })
    assert.deepEqual(
      booked.map((row) => row.units),
      [units],
      fate,
    )
  }
  assert.equal(proxy.cuts, 2)
})
