import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { createServer } from 'node:net'
import { test } from 'node:test'
import { createManualClock } from '../../core/clock.ts'
import { isServiceError, type ServiceError } from '../../core/error.ts'
import { until } from '../process/test-wait.ts'
import { openListener } from './listener.ts'
import { portLockPath, reservePort } from './reserve-port.ts'

const onConnection = () => {}

for (const host of ['127.0.0.1', '::1', 'localhost']) {
  test(`threads share a reserved port of ${host}; another process is refused with the error and fix of a port in use`, async () => {
    const reserved = await reservePort({ host, port: 0 })
    assert.ok(reserved.port > 0)
    await using first = await openListener({ host, port: reserved.port, reusePort: true }, { onConnection })
    await using second = await openListener({ host, port: reserved.port, reusePort: true }, { onConnection })
    await reserved[Symbol.asyncDispose]()
    assert.equal(first.address.port, second.address.port)

    const today = await refusalOf(openListener({ host, port: reserved.port }, { onConnection }))
    const refused = await reserveInOtherProcess(host, reserved.port)
    assert.equal(refused, `address-in-use|${today.message}|${today.fix}`)
  })
}

test('a socket on all addresses keeps the port of one address from being reserved, and the reverse', async () => {
  const every = createServer().listen({ host: '::', port: 0, reusePort: true })
  await once(every, 'listening')
  const { port } = every.address() as { port: number }
  await refusalOf(reservePort({ host: '127.0.0.1', port }))
  every.close()
  await using one = await openListener({ host: '127.0.0.1', port, reusePort: true }, { onConnection })
  await refusalOf(reservePort({ host: '0.0.0.0', port: one.address.port }))
})

test('of two that start at the same time one gets the port: the other waits until it listens, then is refused', async () => {
  const first = await reservePort({ host: '127.0.0.1', port: 0 })
  const { port } = first
  const clock = createManualClock()
  const refused = refusalOf(reservePort({ host: '127.0.0.1', port }, { clock }))
  await until('the second one waits', () => clock.pendingTimers() === 1)
  await using _listener = await openListener({ host: '127.0.0.1', port, reusePort: true }, { onConnection })
  await first[Symbol.asyncDispose]()
  await clock.advanceAsync(50)
  await refused
})

test('a lock that is never released delays the reservation by 10 seconds and does not prevent it', async () => {
  const before = await reservePort({ host: '127.0.0.1', port: 0 })
  const { port } = before
  await before[Symbol.asyncDispose]()
  const held = createServer().listen({ path: portLockPath(port) })
  await once(held, 'listening')
  const clock = createManualClock()
  const reserving = reservePort({ host: '127.0.0.1', port }, { clock })
  for (let ms = 0; ms < 10_000; ms += 50) {
    await until('it waits', () => clock.pendingTimers() === 1)
    await clock.advanceAsync(50)
  }
  await using reserved = await reserving
  assert.equal(reserved.port, port)
  held.close()
})

async function refusalOf(opening: Promise<AsyncDisposable>): Promise<ServiceError> {
  try {
    await (await opening)[Symbol.asyncDispose]()
  } catch (error) {
    assert(isServiceError(error, 'address-in-use'), String(error))
    return error
  }
  return assert.fail('the port was given')
}

/** What another process gets: code, message and fix of the refusal. */
async function reserveInOtherProcess(host: string, port: number): Promise<string> {
  const program = `
    import { reservePort } from ${JSON.stringify(new URL('./reserve-port.ts', import.meta.url).href)}
    await reservePort(${JSON.stringify({ host, port })}).then(
      () => console.log('reserved'),
      (error) => console.log([error.code, error.message, error.fix].join('|')),
    )
    process.exit()
  `
  const child = spawn(process.execPath, ['--input-type=module', '-e', program], {
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  let text = ''
  for await (const chunk of child.stdout) text += String(chunk)
  return text.trim()
}
