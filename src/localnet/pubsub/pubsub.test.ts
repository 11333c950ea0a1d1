import assert from 'node:assert/strict'
import { once } from 'node:events'
import { test } from 'node:test'
import { account, address, MEMO } from '../../../test/support/solana/chain-double.ts'
import { startPubSubNode as start } from '../../../test/support/solana/pubsub-node.ts'
import { encodeBase58 } from '../../solana/crypto/base58.ts'

const ALICE = address('alice')
const PROGRAM = address('program')

test('accountSubscribe notifies the last state in a slot at its commitment, and not on subscribing', async () => {
  await using node = await start()
  const client = await node.open()
  const { result: processed } = await client.call('accountSubscribe', [
    ALICE,
    { commitment: 'processed', encoding: 'base64' },
  ])
  const { result: finalized } = await client.call('accountSubscribe', [ALICE])
  const first = node.transaction({ writes: [[ALICE, account({ lamports: 1n })]] })
  const second = node.transaction({ writes: [[ALICE, account({ lamports: 2n, data: Buffer.from('abc') })]] })
  const { slot } = node.produce({ transactions: [first, second] })
  node.produce()
  node.produce()
  const reported = await client.rest()
  assert.deepEqual(reported, [
    {
      jsonrpc: '2.0',
      method: 'accountNotification',
      params: {
        result: {
          context: { slot },
          value: { ...PLAIN_ACCOUNT, lamports: 2, data: ['YWJj', 'base64'], space: 3 },
        },
        subscription: processed,
      },
    },
    {
      jsonrpc: '2.0',
      method: 'accountNotification',
      params: {
        result: {
          context: { slot },
          value: { ...PLAIN_ACCOUNT, lamports: 2, data: encodeBase58(Buffer.from('abc')), space: 3 },
        },
        subscription: finalized,
      },
    },
  ])
})

// JSON.parse rounds rentEpoch; the exact text has its own test.
const PLAIN_ACCOUNT = {
  executable: false,
  owner: '11111111111111111111111111111111',
  rentEpoch: Number('18446744073709551615'),
}

test('u64 values are printed exactly', async () => {
  await using node = await start()
  const client = await node.open()
  await client.call('accountSubscribe', [ALICE, { commitment: 'processed' }])
  node.produce({ systemWrites: [node.write(ALICE, account({ lamports: 18446744073709551614n }))] })
  const text = await client.text()
  assert.match(text, /"lamports":18446744073709551614,.*"rentEpoch":18446744073709551615/)
})

test('a deleted account is notified as an empty one', async () => {
  await using node = await start()
  const client = await node.open()
  await client.call('accountSubscribe', [ALICE, { commitment: 'confirmed', encoding: 'base64' }])
  node.produce({ transactions: [node.transaction({ writes: [[ALICE, null]] })] })
  node.produce()
  const [notification] = await client.rest()
  assert.deepEqual(notification?.params?.result, {
    context: { slot: 10 },
    value: { data: ['', 'base64'], executable: false, lamports: 0, owner: PLAIN_ACCOUNT.owner, rentEpoch: 0, space: 0 },
  })
})

test('programSubscribe notifies accounts of the program that match the filters', async () => {
  await using node = await start()
  const client = await node.open()
  const filters = [{ dataSize: 4 }, { memcmp: { offset: 1, bytes: encodeBase58(Buffer.from('bc')) } }]
  await client.call('programSubscribe', [PROGRAM, { commitment: 'processed', encoding: 'base64', filters }])
  const owned = (data: string) => account({ owner: PROGRAM, data: Buffer.from(data) })
  node.produce({
    transactions: [
      node.transaction({
        writes: [
          [address(1), owned('abcd')],
          [address(2), owned('abc')],
          [address(3), owned('axcd')],
          [address(4), account({ data: Buffer.from('abcd') })],
          [address(5), null],
        ],
      }),
    ],
  })
  const reported = await client.rest()
  assert.equal(reported.length, 1)
  assert.deepEqual(reported[0]?.params?.result, {
    context: { slot: 10 },
    value: {
      pubkey: address(1),
      account: { ...PLAIN_ACCOUNT, owner: PROGRAM, lamports: 1_000_000, data: [btoa('abcd'), 'base64'], space: 4 },
    },
  })
})

test('logsSubscribe accepts all, allWithVotes and one mention, and includes failed transactions', async () => {
  await using node = await start()
  const client = await node.open()
  const { result: all } = await client.call('logsSubscribe', ['all', { commitment: 'processed' }])
  const { result: memo } = await client.call('logsSubscribe', [{ mentions: [MEMO] }, { commitment: 'processed' }])
  await client.call('logsSubscribe', [{ mentions: [ALICE] }, { commitment: 'processed' }])
  const { result: loaded } = await client.call('logsSubscribe', [
    { mentions: [address('table')] },
    { commitment: 'processed' },
  ])
  const err = { InstructionError: [0, { Custom: 1 }] }
  const record = node.transaction({
    meta: { err, logMessages: ['a', 'b'], loadedAddresses: { writable: [], readonly: [address('table')] } },
  })
  node.produce({ transactions: [record] })
  const reported = await client.rest()
  assert.deepEqual(
    reported.map(({ params }) => params?.subscription),
    [all, memo, loaded],
  )
  assert.deepEqual(reported[0]?.params?.result, {
    context: { slot: 10 },
    value: { signature: record.signature, err, logs: ['a', 'b'] },
  })
})

test('signatureSubscribe ends with its notification, also for a transaction that landed before', async () => {
  await using node = await start()
  const client = await node.open()
  const record = node.transaction()
  const { signature } = record
  const { result: early } = await client.call('signatureSubscribe', [
    signature,
    { commitment: 'confirmed', enableReceivedNotification: true },
  ])
  node.produce({ transactions: [record] })
  assert.deepEqual(
    (await client.rest()).map(({ params }) => params),
    [{ result: { context: { slot: 10 }, value: 'receivedSignature' }, subscription: early }],
  )
  node.produce()
  assert.deepEqual(
    (await client.rest()).map(({ params }) => params),
    [{ result: { context: { slot: 10 }, value: { err: null } }, subscription: early }],
  )
  assert.equal(node.server.subscriptions, 0)
  assert.equal((await client.call('signatureUnsubscribe', [early])).error?.message, 'Invalid subscription id.')

  const late = await client.call('signatureSubscribe', [signature, { commitment: 'processed' }])
  assert.notEqual(late.result, early)
  assert.deepEqual((await client.next()).params, {
    result: { context: { slot: 11 }, value: { err: null } },
    subscription: late.result,
  })
  assert.equal(node.server.subscriptions, 0)
})

test('slot, root and slotsUpdates notifications follow each slot in order', async () => {
  await using node = await start()
  const client = await node.open()
  for (const kind of ['slot', 'root', 'slotsUpdates']) await client.call(`${kind}Subscribe`)
  const failed = node.transaction({ meta: { err: 'AccountInUse' } })
  node.produce({ transactions: [node.transaction(), failed] })
  node.produce()
  const reported = (await client.rest()).map(({ method, params }) => [
    method?.replace('Notification', ''),
    params?.result,
  ])
  const stats = {
    numTransactionEntries: 1,
    numSuccessfulTransactions: 1,
    numFailedTransactions: 1,
    maxTransactionsPerEntry: 2,
  }
  const update = (type: string, slot: number, more = {}) => [
    'slotsUpdates',
    { slot, timestamp: 1_800_000_000_000, type, ...more },
  ]
  assert.deepEqual(reported.slice(0, 7), [
    update('completed', 10),
    update('frozen', 10, { stats }),
    update('optimisticConfirmation', 9),
    update('firstShredReceived', 11),
    update('createdBank', 11, { parent: 10 }),
    ['slot', { slot: 11, parent: 10, root: 9 }],
    update('completed', 11),
  ])
  assert.deepEqual(reported.slice(8, 12), [
    update('optimisticConfirmation', 10),
    update('root', 9),
    ['root', 9],
    update('firstShredReceived', 12),
  ])
})

test('blockSubscribe notifies complete blocks, or only transactions that mention an account', async () => {
  await using node = await start()
  const client = await node.open()
  const config = { commitment: 'confirmed', transactionDetails: 'signatures' }
  const { result: all } = await client.call('blockSubscribe', ['all', config])
  const payer = node.transaction({ payer: 2 })
  const key = encodeBase58(payer.wire.subarray(65 + 4, 65 + 36))
  await client.call('blockSubscribe', [{ mentionsAccountOrProgram: key }, config])
  const other = node.transaction({ payer: 3 })
  const block = node.produce({ transactions: [other, payer] })
  node.produce({ transactions: [node.transaction({ payer: 3 })] })
  node.produce()
  const reported = (await client.rest()).map(({ params }) => params)
  assert.equal(reported.filter((params) => params?.subscription === all).length, 3)
  const mentioned = reported.filter((params) => params?.subscription !== all)
  assert.deepEqual(
    mentioned.map((params) => params?.result),
    [
      {
        context: { slot: 10 },
        value: {
          slot: 10,
          block: {
            previousBlockhash: block.previousBlockhash,
            blockhash: block.blockhash,
            parentSlot: 9,
            signatures: [payer.signature],
            blockTime: block.time,
            blockHeight: 10,
          },
          err: null,
        },
      },
    ],
  )
})

test('equal requests share one id across connections until the last one unsubscribes', async () => {
  await using node = await start()
  const [one, two] = [await node.open(), await node.open()]
  const { result: id } = await one.call('accountSubscribe', [ALICE])
  assert.equal(
    (await two.call('accountSubscribe', [ALICE, { encoding: 'binary', commitment: 'finalized' }])).result,
    id,
  )
  assert.equal((await one.call('accountSubscribe', [ALICE])).result, id)
  assert.notEqual((await one.call('accountSubscribe', [ALICE, { encoding: 'base64' }])).result, id)
  assert.equal(node.server.subscriptions, 2)
  // Two equal requests of one connection are one subscription.
  assert.equal((await one.call('accountUnsubscribe', [id])).result, true)
  assert.equal((await one.call('accountUnsubscribe', [id])).error?.code, -32602)
  assert.equal(node.server.subscriptions, 2)
  one.socket.close()
  two.socket.close()
  await Promise.all([once(one.socket, 'close'), once(two.socket, 'close')])
  const three = await node.open()
  await three.rest()
  assert.equal(node.server.subscriptions, 0)
  assert.ok(((await three.call('accountSubscribe', [ALICE])).result as number) > (id as number))
})

test('the subscription limit refuses new subscriptions, not shared ones', async () => {
  await using node = await start({ subscriptionsMax: 1 })
  const client = await node.open()
  await client.call('slotSubscribe')
  assert.deepEqual((await client.call('rootSubscribe')).error, {
    code: -32603,
    message: 'Internal Error: Subscription refused. Node subscription limit reached',
  })
  assert.equal((await (await node.open()).call('slotSubscribe')).result, 0)
})

test('invalid params are refused with the messages of Agave', async () => {
  await using node = await start()
  const client = await node.open()
  const cases: [method: string, params: unknown, message: string][] = [
    ['accountSubscribe', ['nonsense'], 'Invalid Request: Invalid pubkey provided'],
    ['programSubscribe', ['1'], 'Invalid Request: Invalid pubkey provided'],
    [
      'programSubscribe',
      [PROGRAM, { filters: Array(5).fill({ dataSize: 1 }) }],
      'Invalid params: Too many filters provided; max 4',
    ],
    [
      'programSubscribe',
      [PROGRAM, { filters: [{ memcmp: { offset: 0, bytes: '1'.repeat(200) } }] }],
      'Invalid params: Invalid param: DataTooLarge',
    ],
    ['signatureSubscribe', [ALICE], 'Invalid Request: Invalid signature provided'],
    ['logsSubscribe', [{ mentions: [] }], 'Invalid Request: Only 1 address supported'],
    ['logsSubscribe', [{ mentions: [ALICE, PROGRAM] }], 'Invalid Request: Only 1 address supported'],
    ['logsSubscribe', [{ mentions: ['x'] }], 'Invalid Request: Invalid mentions provided'],
    ['blockSubscribe', ['all', { commitment: 'processed' }], 'Method does not support commitment below `confirmed`'],
    [
      'blockSubscribe',
      [{ mentionsAccountOrProgram: '1' }],
      'Invalid Request: Invalid mentions_account_or_program provided',
    ],
    ['accountUnsubscribe', [77], 'Invalid subscription id.'],
    ['accountSubscribe', [], '`params` should have at least 1 argument(s)'],
  ]
  for (const [method, params, message] of cases) {
    assert.deepEqual((await client.call(method, params)).error, { code: -32602, message }, method)
  }
  assert.equal((await client.call('nonsenseSubscribe', [])).error?.code, -32601)
  assert.equal((await client.call('ping')).error?.code, -32601)
})

test('framing as in Agave: batches, notifications, ids unchanged', async () => {
  await using node = await start()
  const client = await node.open()
  assert.equal(await client.raw('{'), '{"jsonrpc":"2.0","error":{"code":-32700,"message":"Parse error"},"id":null}')
  assert.equal(
    await client.raw('{"jsonrpc":"2.0","id":18446744073709551615,"method":"slotSubscribe"}'),
    '{"jsonrpc":"2.0","result":0,"id":18446744073709551615}',
  )
  assert.equal(
    await client.raw(
      '[{"jsonrpc":"2.0","method":"ping"},{"jsonrpc":"2.0","id":"a","method":"rootSubscribe"},{"id":1}]',
    ),
    '[{"jsonrpc":"2.0","result":1,"id":"a"},{"jsonrpc":"2.0","error":{"code":-32600,"message":"Invalid request"},"id":1}]',
  )
  assert.match(await client.raw('{"id":1,"method":"slotSubscribe"}'), /Unsupported JSON-RPC protocol version/)
  // The ping of kit and web3.js gets no response.
  client.socket.send('{"jsonrpc":"2.0","method":"ping"}')
  assert.deepEqual(await client.rest(), [])
  // A binary message with text in it is read like a text message.
  assert.equal(
    await client.raw(Buffer.from('{"jsonrpc":"2.0","id":1,"method":"slotSubscribe"}')),
    '{"jsonrpc":"2.0","result":0,"id":1}',
  )
})

test('messages over 4096 bytes and invalid UTF-8 close the connection, never with 1000', async () => {
  await using node = await start()
  const large = await node.open()
  await large.raw(`"${'a'.repeat(4094)}"`)
  large.socket.send(`"${'a'.repeat(4095)}"`)
  assert.equal((await once(large.socket, 'close'))[0], 1009)
  const binary = await node.open()
  binary.socket.send(Buffer.from([0x22, 0xff, 0x22]))
  assert.equal((await once(binary.socket, 'close'))[0], 1003)
})

test('blockSubscribe and voteSubscribe can be disabled', async () => {
  await using node = await start({ blockSubscribe: false, voteSubscribe: false })
  const client = await node.open()
  for (const method of ['blockSubscribe', 'voteSubscribe', 'blockUnsubscribe', 'voteUnsubscribe']) {
    assert.deepEqual((await client.call(method, ['all'])).error, { code: -32601, message: 'Method not found' })
  }
})

test('closes a slow client with 1013, and all clients with 1012 on drain', async () => {
  await using node = await start({ pendingBytesMax: 100_000 })
  const slow = await node.open()
  await slow.call('accountSubscribe', [ALICE, { commitment: 'processed', encoding: 'base64' }])
  const closed = once(slow.socket, 'close')
  // The client cannot read within this turn. The buffers of both kernels take some megabytes.
  for (let blocks = 0; blocks < 100 && node.server.subscriptions > 0; blocks++) {
    node.produce({ systemWrites: [node.write(ALICE, account({ data: new Uint8Array(200_000) }))] })
  }
  assert.equal((await closed)[0], 1013)
  const other = await node.open()
  const drained = node.server.drain(10_000)
  assert.equal((await once(other.socket, 'close'))[0], 1012)
  await drained
})
