import assert from 'node:assert/strict'
import { once } from 'node:events'
import { createServer } from 'node:net'
import { test } from 'node:test'
import { isServiceError, ServiceError } from '../../../core/error.ts'
import { configSchema } from '../config/config.ts'
import type { Settings } from '../config/settings.ts'
import type { AccountMethods } from '../threads/protocol.ts'
import type { SupervisedThread } from '../threads/supervised-thread.ts'
import type { ThreadHost } from '../threads/thread-host.ts'
import { createPortReserve, openGatewayThreads } from './gateway-threads.ts'

const HOST = '127.0.0.1'

function settingsOn(...ports: [rpc: number, ws: number, grpc: number]): Settings {
  const [rpc, ws, grpc] = ports.map((port) => ({ listen: `${HOST}:${port}` }))
  const config = configSchema.parse({ bundle: { rpc, ws, grpc } })
  return { config, stateDir: '/nowhere', loaded: { folder: '/nowhere', file: undefined } } as unknown as Settings
}

/** The threads of these tests call nothing. */
const PARTS = { accountMethods: {} as AccountMethods }

/** Threads of which the first so many find a port taken. */
function threadsWithTaken(taken: number) {
  const starts: string[] = []
  const threads = {
    namesOf: () => ['gateway-1'],
    async start({ config }: Parameters<ThreadHost['start']>[0]) {
      const { rpc, ws, grpc } = config(settingsOn(0, 0, 0).config, undefined).bundle
      starts.push([rpc, ws, grpc].map(({ listen }) => listen).join(' '))
      if (starts.length <= taken) throw new ServiceError('address-in-use', `${rpc.listen} is in use`)
      const address = { host: HOST, port: Number(rpc.listen.split(':')[1]) }
      return {
        name: 'gateway-1',
        addresses: { rpc: address, ws: address, grpc: address },
        async [Symbol.asyncDispose]() {},
      } as unknown as SupervisedThread
    },
  } as unknown as ThreadHost
  return { threads, starts }
}

test('a port that the system has chosen and that is taken before the threads listen is replaced by another', async () => {
  const { threads, starts } = threadsWithTaken(2)
  await using opened = await openGatewayThreads(settingsOn(0, 0, 0), threads, PARTS)
  assert.equal(starts.length, 3)
  assert.ok(starts.every((ports) => !/:0\b/.test(ports)))
  assert.ok(starts[2]?.startsWith(`${HOST}:${opened.rpc.port} `))
})

test('after three of them, and for a configured port at the first, the error is that of a port in use', async () => {
  const isTaken = (error: unknown) => isServiceError(error, 'address-in-use')
  const chosen = threadsWithTaken(3)
  await assert.rejects(openGatewayThreads(settingsOn(0, 0, 0), chosen.threads, PARTS), isTaken)
  assert.equal(chosen.starts.length, 3)
  const [rpc, ws, grpc] = await Promise.all([listen(0), listen(0), listen(0)])
  for (const { server } of [rpc, ws, grpc]) server.close()
  const configured = threadsWithTaken(1)
  await assert.rejects(openGatewayThreads(settingsOn(rpc.port, ws.port, grpc.port), configured.threads, PARTS), isTaken)
  assert.equal(configured.starts.length, 1)
})

test('ports are reserved again by one thread after another, where none of the process listens on them', async (t) => {
  const { server, port } = await listen(0)
  t.after(() => server.close())
  const reserve = createPortReserve([{ host: HOST, port }])
  await assert.rejects(
    reserve(() => true),
    (error) => isServiceError(error, 'address-in-use'),
  )
  // Those of this process that listen are no reason to refuse.
  await (await reserve(() => false))[Symbol.asyncDispose]()
  server.close()
  const first = await reserve(() => true)
  let isSecond = false
  const second = reserve(() => false).then((reservation) => {
    isSecond = true
    return reservation
  })
  await new Promise((resolve) => void setTimeout(resolve, 20))
  const wasBeforeFirst = isSecond
  await first[Symbol.asyncDispose]()
  await (await second)[Symbol.asyncDispose]()
  assert.equal(wasBeforeFirst, false)
})

async function listen(port: number) {
  const server = createServer()
  server.listen(port, HOST)
  await once(server, 'listening')
  return { server, port: (server.address() as { port: number }).port }
}
