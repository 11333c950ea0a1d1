import assert from 'node:assert/strict'
import { writeFileSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { test } from 'node:test'
import { NODE_BLOCKHASH } from '../../../../test/support/sender/node.ts'
import { startTestSender, tipped, walletOf } from '../../../../test/support/sender/start.ts'
import type { AppendFile } from '../../../platform/files/append.ts'
import { makeTestFolder } from '../../../platform/files/test-folder.ts'
import { systemClock } from '../../../platform/process/clock.ts'
import { createLifecycle } from '../../../platform/process/lifecycle.ts'
import { secureRandom } from '../../../platform/process/random.ts'
import { until } from '../../../platform/process/test-wait.ts'
import { silentLogger } from '../../../platform/telemetry/logger.ts'
import { LEDGER_FILE } from '../../../sender/tips/ledger-file.ts'
import { configSchema } from '../config/config.ts'
import { checkThreadsOf, openTipLedger, sendsToEmbeddedOnly } from './sender.ts'

test('a journal that works again does not hide that no tip is counted', async () => {
  const deps = { log: silentLogger, clock: systemClock, random: secureRandom }
  const lifecycle = createLifecycle({}, deps)
  lifecycle.started()
  const parts = () => lifecycle.health().reasons.map(({ part }) => part)
  using folder = makeTestFolder()
  writeFileSync(folder.file(LEDGER_FILE), 'not a database')
  assert.equal(await openTipLedger(folder.path, { ...deps, lifecycle }), undefined)
  assert.deepEqual(parts(), ['sender tips'])

  const node = createServer((_, response) => response.end('{"jsonrpc":"2.0","id":1,"result":"ok"}'))
  await new Promise<void>((resolve) => node.listen(0, '127.0.0.1', resolve))
  using _closing = { [Symbol.dispose]: () => node.close().closeAllConnections() }
  const url = `http://127.0.0.1:${(node.address() as AddressInfo).port}`
  let isFull = true
  const disk = (file: AppendFile): AppendFile => ({
    ...file,
    writeAt: (at, text) => (isFull ? Promise.reject(new Error('disk full')) : file.writeAt(at, text)),
  })
  await using sender = await startTestSender({
    relays: [{ name: 'node', url, allowPrivate: true }],
    upstreams: false,
    quic: { enabled: false },
    disk,
    lifecycle,
  })
  const send = (memo: string) => sender.send(tipped(walletOf(0), NODE_BLOCKHASH, memo))
  assert.equal((await send('one')).error?.code, -32503)
  assert.deepEqual(parts(), ['sender tips', 'sender journal'])
  isFull = false
  let n = 0
  // RETRY_MS of the journal has to pass.
  await until('the journal is written again', async () => (await send(`again ${n++}`)).error === undefined)
  assert.deepEqual(parts(), ['sender tips'])
})

test('a thread for each core but one checks signatures, and none where nothing but the embedded chain is configured', () => {
  const threads = (config: object, cores: number) => checkThreadsOf(configSchema.parse(config), cores)
  const nodes = [{ name: 'a', rpc: 'https://a.example.net', ws: 'wss://a.example.net', grpc: 'https://a.example.net' }]
  assert.deepEqual(
    [1, 2, 4, 16].map((cores) => threads({ upstreams: { nodes } }, cores)),
    [1, 1, 3, 4],
  )
  const rpc = [{ name: 'a', url: 'https://a.example.net' }]
  assert.equal(threads({ sender: { rpc } }, 4), 3)
  assert.equal(threads({ sender: { relays: rpc } }, 4), 3)
  assert.equal(threads({}, 4), 0)
  assert.equal(sendsToEmbeddedOnly(configSchema.parse({ sender: { relays: rpc } })), false)
})
