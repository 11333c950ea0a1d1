import assert from 'node:assert/strict'
import { once } from 'node:events'
import { writeFileSync } from 'node:fs'
import { test } from 'node:test'
import { Client, credentials } from '@grpc/grpc-js'
import { until } from '../../src/platform/process/test-wait.ts'
import { encodeBase58 } from '../../src/solana/crypto/base58.ts'
import { SubscribeDeshredRequestSchema, SubscribeUpdateDeshredSchema } from '../../src/solana/gen/geyser_pb.ts'
import { decodeMessage, encodeMessage } from '../../src/solana/geyser/protobuf.ts'
import { WireReader } from '../../src/solana/geyser/wire-reader.ts'
import { decodeBatch } from '../../src/solana/shred/entry.ts'
import { sluice, temporaryFolder } from '../support/cli/run.ts'
import { openStream, tokenMetadata } from '../support/gateway/grpc.ts'
import { serve } from '../support/process/serve.ts'

const DESHRED = '/geyser.Geyser/SubscribeDeshred'
const ENTRIES = '/shredstream.ShredstreamProxy/SubscribeEntries'
/** Slots compared with getBlock. */
const SLOTS = 5

test('the transactions of the embedded chain arrive from its shreds, exactly those of its blocks', async () => {
  await using home = await temporaryFolder()
  writeFileSync(home.file('sluice.toml'), '[products.shreds-decoded]\nstatus = "preview"\n')
  await using running = serve({
    cwd: home.path,
    workers: 2,
    env: {
      SLUICE_LOCALNET__ENABLED: undefined,
      SLUICE_SENDER__ENABLED: 'false',
      SLUICE_BUNDLE__ENTRIES__ENABLED: 'true',
      SLUICE_BUNDLE__ENTRIES__LISTEN: '127.0.0.1:0',
    },
  })
  await running.line(/"msg":"started"/)
  const run = async (...words: string[]) => {
    const { code, stdout, stderr } = await sluice(words, { cwd: home.path })
    assert.equal(code, 0, stderr)
    return stdout
  }
  await run('customer', 'add', 'acme', '--contact', 'a@b.c')
  const created = await run(
    'sub',
    'create',
    'early',
    '--customer',
    'acme',
    '--plan',
    'build',
    '--products',
    'bundle,shreds-decoded',
    '--print-token',
  )
  const token = /slc_[0-9A-Za-z]{38}/.exec(created)?.[0] as string
  const client = new Client(await running.address('grpc'), credentials.createInsecure())
  // The token is valid within a second, in each thread by itself; the connection stays with one thread.
  await until('the token is valid', async () => {
    const trial = openStream(client, DESHRED, tokenMetadata(token))
    const isOpen = await Promise.race([trial.headers.then(() => true), trial.ended.then(() => false)])
    trial.call.cancel()
    return isOpen
  })
  const stream = openStream(client, DESHRED, tokenMetadata(token))
  stream.send(encodeMessage(SubscribeDeshredRequestSchema, { deshredTransactions: { all: {} }, slots: { s: {} } }))
  const raw = (bytes: Buffer) => bytes
  const entries: Buffer[] = []
  const entryCall = client.makeServerStreamRequest(ENTRIES, raw, raw, Buffer.alloc(0), tokenMetadata(token))
  entryCall.on('data', (message: Buffer) => entries.push(message))
  entryCall.on('error', () => {})
  // The port of its own. The token may be valid in another thread only, within a second.
  const portClient = new Client(await running.address('entries'), credentials.createInsecure())
  const fromPort: Buffer[] = []
  await until('entries arrive at their own port', async () => {
    const call = portClient.makeServerStreamRequest(ENTRIES, raw, raw, Buffer.alloc(0), tokenMetadata(token))
    call.on('data', (message: Buffer) => fromPort.push(message))
    await Promise.race([once(call, 'data'), new Promise((resolve) => call.on('error', resolve))])
    call.cancel()
    return fromPort.length > 0
  })

  /** Signatures by slot, in the order of arrival. */
  const received = new Map<number, string[]>()
  const completed = new Set<number>()
  let read = 0
  const readAll = () => {
    for (; read < stream.messages.length; read++) {
      const { updateOneof } =
        decodeMessage(SubscribeUpdateDeshredSchema, stream.messages[read] as Buffer) ?? assert.fail()
      if (updateOneof.case === 'slot') {
        assert.equal(updateOneof.value.deadError, undefined)
        if (updateOneof.value.status === 4) {
          completed.add(Number(updateOneof.value.slot))
          // It comes with the last transactions of the slot, not when the slot is closed 32 slots later.
          const newest = Math.max(0, ...received.keys())
          assert.ok(newest - Number(updateOneof.value.slot) <= 1, `slot ${updateOneof.value.slot} at ${newest}`)
        }
      }
      if (updateOneof.case !== 'deshredTransaction') continue
      const { slot, transaction } = updateOneof.value
      const list = received.get(Number(slot)) ?? []
      list.push(encodeBase58(transaction?.signature ?? new Uint8Array()))
      received.set(Number(slot), list)
    }
    return received.size > SLOTS + 2 && completed.size > 0
  }
  await until('several slots were received, and one is complete', readAll)

  const rpc = `http://${await running.address('rpc')}`
  // The first slot may have begun before the stream.
  const slots = [...received.keys()].sort((a, b) => a - b).slice(1, 1 + SLOTS)
  for (const slot of slots) {
    const block = await blockOf(rpc, token, slot)
    assert.deepEqual(received.get(slot), block, `slot ${slot}`)
  }
  await until('entries were received', () => entries.some((message) => message.equals(fromPort[0] as Buffer)))
  portClient.close()
  const entry = new WireReader(entries[0] as Buffer)
  const fields: number[] = []
  while (entry.next()) fields.push(entry.field)
  assert.deepEqual(fields, [1, 2])
  assert.ok(decodeBatch((entries[0] as Buffer).subarray(entry.from, entry.to)).ok)
  type SlotLine = { readonly slot: number; readonly is_complete: boolean; readonly transactions: number }
  let shared: SlotLine[] = []
  await until('one of the slots is complete', () => readAll() && slots.some((slot) => completed.has(slot)))
  // A slot is in the report when it is closed, some slots later.
  await until('the report has one of the slots', async () => {
    const response = await fetch(`${rpc}/v1/decoded/report`, { headers: { 'x-token': token } })
    // There is a limit of requests per second.
    if (response.status === 429) return false
    assert.equal(response.status, 200)
    shared = ((await response.json()) as { slots: SlotLine[] }).slots.filter(({ slot }) => slots.includes(slot))
    return shared.length > 0
  })
  for (const { slot, is_complete, transactions } of shared)
    assert.deepEqual([slot, is_complete, transactions], [slot, true, received.get(slot)?.length])
  const listed = JSON.parse(await run('shred', 'report', '--decoded', '--json')) as {
    slot: number
    is_complete: boolean
  }[]
  assert.ok(listed.some(({ slot, is_complete }) => slots.includes(slot) && is_complete))
  stream.call.cancel()
  entryCall.cancel()
  client.close()
})

async function blockOf(url: string, token: string, slot: number): Promise<string[]> {
  let signatures: string[] | undefined
  await until('the block is finalized', async () => {
    const response = await fetch(url, {
      method: 'POST',
      headers: { 'x-token': token, 'content-type': 'application/json' },
      body: JSON.stringify({
        jsonrpc: '2.0',
        id: 1,
        method: 'getBlock',
        params: [
          slot,
          { transactionDetails: 'signatures', commitment: 'confirmed', maxSupportedTransactionVersion: 1 },
        ],
      }),
    })
    signatures = ((await response.json()) as { result?: { signatures: string[] } }).result?.signatures
    return signatures !== undefined
  })
  return signatures as string[]
}
