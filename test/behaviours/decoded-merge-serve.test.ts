import assert from 'node:assert/strict'
import { writeFileSync } from 'node:fs'
import { test } from 'node:test'
import { Client, credentials } from '@grpc/grpc-js'
import type { GrpcCall } from '../../src/platform/grpc/call.ts'
import { GrpcCode } from '../../src/platform/grpc/status.ts'
import { until } from '../../src/platform/process/test-wait.ts'
import { SubscribeDeshredRequestSchema, SubscribeUpdateDeshredSchema } from '../../src/solana/gen/geyser_pb.ts'
import { decodeMessage, encodeMessage } from '../../src/solana/geyser/protobuf.ts'
import { startFakeNode } from '../faults/fake-node.ts'
import { sluice, temporaryFolder } from '../support/cli/run.ts'
import { openStream, tokenMetadata } from '../support/gateway/grpc.ts'
import { deshredUpdate } from '../support/gateway/upstream-updates.ts'
import { createRandom } from '../support/process/property.ts'
import { serve } from '../support/process/serve.ts'
import { makeBlock } from '../support/shreds/decoded-blocks.ts'

const DESHRED = '/geyser.Geyser/SubscribeDeshred'

test('the decoded stream of a node reaches customers of sluice serve, who stay connected when the node does not', async () => {
  await using home = await temporaryFolder()
  await using node = await startFakeNode()
  const calls: GrpcCall[] = []
  const requests: Uint8Array[] = []
  node.onGrpcCall = (call) => {
    if (call.path !== DESHRED) return call.end({ code: GrpcCode.unimplemented, message: 'nothing here' })
    calls.push(call)
    call.onMessage((message) => void requests.push(Uint8Array.from(message)))
    // The first one fails.
    if (calls.length === 1) return call.end({ code: GrpcCode.unavailable, message: 'not yet' })
    call.send(encodeMessage(SubscribeUpdateDeshredSchema, { updateOneof: { case: 'ping', value: {} } }))
  }
  writeFileSync(
    home.file('sluice.toml'),
    `[products.shreds-decoded]\nstatus = "preview"\n[upstreams]\nallowPrivate = true\n[[upstreams.nodes]]\nname = "fake"\nrpc = "${node.rpc}"\ngrpc = "${node.grpc}"\ndecoded = true\n`,
  )
  await using running = serve({
    cwd: home.path,
    args: ['--no-demo'],
    workers: 2,
    env: { SLUICE_SENDER__ENABLED: 'false' },
  })
  await running.line(/"msg":"started"/)
  const run = async (...words: string[]) => {
    const { code, stdout, stderr } = await sluice(words, { cwd: home.path })
    assert.equal(code, 0, stderr)
    return stdout
  }
  await run('customer', 'add', 'acme')
  const created = await run(
    ...['sub', 'create', 'early', '--customer', 'acme', '--plan', 'build', '--products', 'shreds-decoded'],
    '--print-token',
  )
  const token = /slc_[0-9A-Za-z]{38}/.exec(created)?.[0] as string
  const client = new Client(await running.address('grpc'), credentials.createInsecure())
  let stream = openStream(client, DESHRED, tokenMetadata(token))
  await until('the token is valid', async () => {
    if (await Promise.race([stream.headers.then(() => true), stream.ended.then(() => false)])) return true
    stream = openStream(client, DESHRED, tokenMetadata(token))
    return false
  })
  stream.send(encodeMessage(SubscribeDeshredRequestSchema, { deshredTransactions: { all: {} }, ping: { id: 3 } }))
  const updates = () =>
    stream.messages.map((message) => decodeMessage(SubscribeUpdateDeshredSchema, message)?.updateOneof)
  await until('the filter is set', () => updates().some((update) => update?.case === 'pong'))

  await until('the node is called again', () => calls.length === 2 && requests.length > 1)
  const request = decodeMessage(SubscribeDeshredRequestSchema, requests[0] as Uint8Array)
  assert.deepEqual(
    [Object.keys(request?.deshredTransactions ?? {}), Object.keys(request?.slots ?? {})],
    [['all'], ['slots']],
  )
  const slotsOf = () =>
    updates().flatMap((update) => (update?.case === 'deshredTransaction' ? [Number(update.value.slot)] : []))
  function sendSlot(slot: number): number {
    const block = makeBlock({ slot, parentSlot: slot - 1, batchBytes: [1500] }, createRandom(slot))
    const [set] = block.dataSets
    assert.ok(set !== undefined)
    // One that is no transaction is ignored.
    calls
      .at(-1)
      ?.send(encodeMessage(SubscribeUpdateDeshredSchema, { updateOneof: { case: 'deshredTransaction', value: {} } }))
    for (const wire of set.transactions)
      calls.at(-1)?.send(deshredUpdate({ slot, startIndex: 0, endIndex: set.to * 32 }, wire))
    return set.transactions.length
  }
  let expected = 0
  for (let slot = 100; slot < 110; slot++) {
    const sent = sendSlot(slot)
    if (slot >= 104) expected += sent
  }
  await until('the transactions have arrived', () => slotsOf().length >= expected)
  assert.equal(slotsOf().length, expected, 'the first slots are left out, since a part of them may be known')
  assert.equal(Math.min(...slotsOf()), 104)
  calls.at(-1)?.end({ code: GrpcCode.internal, message: 'gone' })
  await until('the node is called once more', () => calls.length === 3)
  expected += sendSlot(110)
  await until('the stream goes on', () => slotsOf().length === expected)
  const metrics = `http://${await running.address('metrics')}/metrics`
  await until('they are counted', async () =>
    (await (await fetch(metrics)).text()).includes(`sluice_decoded_first_total{source="upstream"} ${expected}\n`),
  )
  stream.call.cancel()
  client.close()
})
