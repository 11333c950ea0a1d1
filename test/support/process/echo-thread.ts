import { createServer } from 'node:net'
import { ServiceError } from '../../../src/core/error.ts'
import type { Logger } from '../../../src/platform/telemetry/logger.ts'
import { runThread } from '../../../src/processes/compose/threads/thread-main.ts'

/** A service that runs in a thread and fails on request: for the tests of how threads are started, called, restarted and ended. */
runThread(['sender'], async ({ log, lifecycle, settings, start, refusals }) => {
  if (settings.config.sender.listen === 'refused:1')
    throw new ServiceError('address-in-use', 'port 1 is in use', { fix: 'choose another' })
  if (start.decodedOutput !== undefined) await released(new Int32Array(start.decodedOutput), log)
  const port = Number(settings.config.sender.listen.split(':')[1])
  const server = createServer()
  await new Promise<void>((resolve) => void server.listen(port, '127.0.0.1', resolve))
  const { port: bound } = server.address() as { port: number }
  log.info({ index: start.index }, 'serves')
  let isLameDuck = false
  let isToThrow = false
  return {
    addresses: { sender: { host: '127.0.0.1', port: bound } },
    details: { nodes: start.nodes.length },
    methods: {
      echo: (params) => params,
      'lame-duck': () => isLameDuck,
      level: () => log.level,
      upstreams: () => ({
        names: start.nodes.map(({ name }) => name),
        allowPrivate: settings.config.upstreams.allowPrivate,
        credentialHeader: settings.config.upstreams.dedicatedCredentialHeader,
        drained: start.drainedNodes,
      }),
      degrade: () => lifecycle.degraded('sender', 'asked to'),
      refuse: () => refusals.record({ requestId: 'r1', interface: 'sender', error: 'rate-limited' }),
      'throw-in-drain': () => void (isToThrow = true),
      throw: () => void setImmediate(() => thrown()),
      exhaust: () => void setImmediate(() => exhausted()),
    },
    beginLameDuck() {
      isLameDuck = true
    },
    async drain(deadlineMs) {
      if (isToThrow) await new Promise(() => void setImmediate(() => thrown()))
      log.info({ deadlineMs }, 'drained')
    },
    async [Symbol.asyncDispose]() {
      log.info('closed')
      server.close()
    },
  }
})

/** A start that takes until the test writes to the memory. Its event loop runs. */
async function released(cell: Int32Array, log: Logger): Promise<void> {
  while (Atomics.load(cell, 0) === 0) {
    await new Promise((resolve) => void setTimeout(resolve, 100))
    log.info('is being started')
  }
}

function thrown(): never {
  throw new Error('on purpose')
}

function exhausted(): never {
  const held: unknown[] = []
  for (;;) held.push(new Array(10_000).fill(held.length))
}
