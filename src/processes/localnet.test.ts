import assert from 'node:assert/strict'
import { createSocket } from 'node:dgram'
import { once } from 'node:events'
import { statSync } from 'node:fs'
import { test } from 'node:test'
import {
  Connection,
  Keypair,
  LAMPORTS_PER_SOL,
  SystemProgram,
  sendAndConfirmTransaction,
  Transaction,
} from '@solana/web3.js'
import type { LocalnetOptionsInput } from '../localnet/options.ts'
import { makeTestFolder } from '../platform/files/test-folder.ts'
import { systemClock } from '../platform/process/clock.ts'
import { secureRandom } from '../platform/process/random.ts'
import { runningProcesses } from '../platform/process/running-processes.ts'
import { until } from '../platform/process/test-wait.ts'
import { silentLogger } from '../platform/telemetry/logger.ts'
import { startLocalnetProcess } from './localnet.ts'

const anyPort = { host: '127.0.0.1', port: 0 }

async function start(input: LocalnetOptionsInput, env: Record<string, string> = { XDG_RUNTIME_DIR: '/dev/null' }) {
  const ports = { rpc: anyPort, ws: anyPort, grpc: anyPort, slotMs: 50 }
  const deps = { log: silentLogger, clock: systemClock, random: secureRandom, env }
  const { lifecycle, localnet } = await startLocalnetProcess({ ...ports, ...input }, deps)
  const stop = async () => {
    lifecycle.stop('test')
    assert.deepEqual(await lifecycle.stopped, { clean: true, reason: 'test' })
  }
  return { localnet, [Symbol.asyncDispose]: stop }
}

function openClient({ rpc, ws }: { rpc: { port: number }; ws: { port: number } }) {
  const wsEndpoint = `ws://127.0.0.1:${ws.port}`
  const connection = new Connection(`http://127.0.0.1:${rpc.port}`, { commitment: 'confirmed', wsEndpoint })
  // It has no close of its own, and would try to come back for ever once the node is gone.
  const inner = connection as unknown as { _rpcWebSocket: { setAutoReconnect(on: boolean): void; close(): void } }
  const close = () => {
    inner._rpcWebSocket.setAutoReconnect(false)
    inner._rpcWebSocket.close()
  }
  return { connection, [Symbol.dispose]: close }
}

test('a transfer over the public ports is still there after a restart', async () => {
  using folder = makeTestFolder()
  const alice = Keypair.generate()
  const bob = Keypair.generate().publicKey
  let signature = ''
  let genesisHash = ''
  {
    await using host = await start({ stateDir: folder.path, traffic: { tps: 20 } })
    using client = openClient(host.localnet)
    const { connection } = client
    genesisHash = await connection.getGenesisHash()
    await connection.confirmTransaction(await connection.requestAirdrop(alice.publicKey, 2 * LAMPORTS_PER_SOL))
    const pay = SystemProgram.transfer({ fromPubkey: alice.publicKey, toPubkey: bob, lamports: LAMPORTS_PER_SOL })
    signature = await sendAndConfirmTransaction(connection, new Transaction().add(pay), [alice])
    assert.equal(await connection.getBalance(bob), LAMPORTS_PER_SOL)
  }
  assert.equal(statSync(folder.file('localnet')).mode & 0o777, 0o700)

  await using host = await start({ stateDir: folder.path, traffic: { enabled: false } })
  using client = openClient(host.localnet)
  const { connection } = client
  assert.equal(await connection.getGenesisHash(), genesisHash)
  assert.equal(await connection.getBalance(alice.publicKey), LAMPORTS_PER_SOL - 5000)
  const found = await connection.getTransaction(signature, { maxSupportedTransactionVersion: 0 })
  assert.equal(found?.meta?.err, null)
})

test('shreds of each block arrive at the configured address', async () => {
  const receiver = createSocket('udp4')
  const slots = new Set<number>()
  receiver.on('message', (packet) => slots.add(Number(packet.readBigUInt64LE(65))))
  receiver.bind(0, '127.0.0.1')
  await once(receiver, 'listening')
  try {
    await using _host = await start({
      shreds: { to: `127.0.0.1:${receiver.address().port}` },
      traffic: { enabled: false },
    })
    await until('shreds of five slots have come', () => slots.size >= 5)
  } finally {
    receiver.close()
  }
})

test('a second chain on the same state folder is refused', async () => {
  using folder = makeTestFolder()
  await using _host = await start({ stateDir: folder.path })
  await assert.rejects(start({ stateDir: folder.path }), { code: 'instance-running' })
})

test('a port in use prevents the start and leaves nothing running', async () => {
  await using host = await start({})
  await assert.rejects(start({ grpc: host.localnet.grpc }), { code: 'address-in-use' })
})

test('a chain with a state folder is found by the commands of its user while it runs', async () => {
  using folder = makeTestFolder()
  const env = { XDG_RUNTIME_DIR: folder.path }
  {
    await using _host = await start({ stateDir: folder.file('state'), traffic: { enabled: false } }, env)
    assert.deepEqual(runningProcesses(env), [
      { pid: process.pid, state: folder.file('state'), config: null, isChain: true },
    ])
  }
  assert.deepEqual(runningProcesses(env), [])
})
