import assert from 'node:assert/strict'
import { test } from 'node:test'
import {
  address,
  appendTransactionMessageInstructions,
  createKeyPairSignerFromPrivateKeyBytes,
  createSolanaRpc,
  createTransactionMessage,
  getBase64EncodedWireTransaction,
  getSignatureFromTransaction,
  pipe,
  setTransactionMessageFeePayerSigner,
  setTransactionMessageLifetimeUsingBlockhash,
  signTransactionMessageWithSigners,
} from '@solana/kit'
import * as web3 from '@solana/web3.js'
import { getTransferSolInstruction } from '@solana-program/system'
import { until } from '../../src/platform/process/test-wait.ts'
import { decodeBase58, encodeBase58 } from '../../src/solana/crypto/base58.ts'
import { signEd25519 } from '../../src/solana/crypto/ed25519.ts'
import { SYSTEM_PROGRAM, transferInstruction } from '../../src/solana/transaction/build.ts'
import { endSocket } from '../support/gateway/web3js.ts'
import {
  MEMO_PROGRAM,
  MIN_TIP,
  sign,
  signatureOf,
  startChainAndSender,
  TIP_ACCOUNTS,
  TIP_KEYS,
  tipInstruction,
  tipped,
  walletOf,
} from '../support/sender/start.ts'
import { encodeParsedTransaction } from '../support/solana/encode-transaction.ts'

/** The seed of a wallet of `walletOf`. */
function seedOf(n: number): Uint8Array {
  const seed = new Uint8Array(32).fill(7)
  new DataView(seed.buffer).setUint32(0, n)
  return seed
}

test('an unmodified kit client sends through the sender, and the receipt becomes landed', async () => {
  await using sluice = await startChainAndSender()
  const { sender, localnet } = sluice
  const chain = createSolanaRpc(`http://127.0.0.1:${localnet.rpc.port}`)
  const rpc = createSolanaRpc(sender.url)
  const payer = await createKeyPairSignerFromPrivateKeyBytes(seedOf(0))
  const build = async (amount: bigint) => {
    const { value } = await chain.getLatestBlockhash().send()
    return pipe(
      createTransactionMessage({ version: 0 }),
      (message) => setTransactionMessageFeePayerSigner(payer, message),
      (message) => setTransactionMessageLifetimeUsingBlockhash(value, message),
      (message) =>
        appendTransactionMessageInstructions(
          [getTransferSolInstruction({ source: payer, destination: address(TIP_ACCOUNTS[0] as string), amount })],
          message,
        ),
      signTransactionMessageWithSigners,
    )
  }
  const good = await build(MIN_TIP)
  const signature = await rpc
    .sendTransaction(getBase64EncodedWireTransaction(good), { encoding: 'base64', skipPreflight: true })
    .send()
  assert.equal(signature, getSignatureFromTransaction(good))
  const { body } = await sender.receipt(signature, '?wait=20')
  assert.equal(body.state, 'landed')
  assert.equal(body.final, true)
  assert.deepEqual(body.tip, { account: TIP_ACCOUNTS[0], lamports: 1_000_000, moved: true })
  const record = localnet.chain.transaction(signature)
  assert.equal(body.landed?.slot, record?.slot)
  assert.deepEqual(
    body.attempts.map(({ path, to, response }) => [path, to, response]),
    [['upstreams', 'localnet', 'taken']],
  )

  const poor = getBase64EncodedWireTransaction(await build(MIN_TIP - 1n))
  // kit 8.4.0 cannot name a code it does not know, but it does reject.
  await assert.rejects(rpc.sendTransaction(poor, { encoding: 'base64' }).send())
  assert.equal((await sender.call('sendTransaction', poor)).error?.code, -32041)
})

test('an unmodified web3.js client sends a legacy and a v0 transaction through the sender', async () => {
  await using sluice = await startChainAndSender()
  const { sender } = sluice
  const connection = new web3.Connection(sender.url, 'processed')
  const payer = web3.Keypair.fromSeed(seedOf(0))
  const tip = web3.SystemProgram.transfer({
    fromPubkey: payer.publicKey,
    toPubkey: new web3.PublicKey(TIP_ACCOUNTS[1] as string),
    lamports: Number(MIN_TIP) + 5,
  })
  const legacy = new web3.Transaction({ feePayer: payer.publicKey, recentBlockhash: sluice.blockhash() }).add(tip)
  legacy.sign(payer)
  const first = await connection.sendRawTransaction(legacy.serialize())
  const message = new web3.TransactionMessage({
    payerKey: payer.publicKey,
    recentBlockhash: sluice.blockhash(),
    instructions: [tip, tip],
  })
  const v0 = new web3.VersionedTransaction(message.compileToV0Message())
  v0.sign([payer])
  const second = await connection.sendTransaction(v0)
  for (const signature of [first, second]) {
    const { body } = await sender.receipt(signature, '?wait=20')
    assert.equal(body.state, 'landed')
    assert.equal(body.landed?.error, null)
  }
  endSocket(connection)
})

test('a transaction that fails on the chain is landed, with no tip paid', async () => {
  await using sluice = await startChainAndSender()
  const { sender } = sluice
  const [payer, other] = [walletOf(0), walletOf(1)]
  const moreThanItHas = { from: payer.publicKey, to: other.publicKey, lamports: 100_000_000_000n }
  const wire = sign(payer, sluice.blockhash(), [tipInstruction(payer), transferInstruction(moreThanItHas)])
  assert.equal((await sender.send(wire)).result, signatureOf(wire))
  const { body } = await sender.receipt(signatureOf(wire), '?wait=20')
  assert.equal(body.state, 'landed')
  assert.notEqual(body.landed?.error, null)
  assert.equal(body.tip?.moved, false)
  const stats = sender.sender.stats()
  assert.deepEqual([stats.accepted, stats.landed, stats.failed, stats.tipLamports], [1, 1, 1, '0'])
})

test('the raw endpoint accepts bytes, base64 and base58, and the statistics count them', async () => {
  await using sluice = await startChainAndSender()
  const { sender } = sluice
  const raw = (body: string | Buffer<ArrayBuffer>, type: string, query = '') =>
    fetch(`${sender.url}/api/v1/transactions${query}`, { method: 'POST', body, headers: { 'content-type': type } })
  const wires = ['a', 'b', 'c'].map((memo) => tipped(walletOf(0), sluice.blockhash(), memo))
  const [a, b, c] = wires as [Uint8Array, Uint8Array, Uint8Array]
  const responses = [
    await raw(Buffer.from(a), 'application/octet-stream'),
    await raw(Buffer.from(b).toString('base64'), 'text/plain'),
    await raw(encodeBase58(c), 'text/plain; charset=utf-8', '?response=none'),
  ]
  assert.deepEqual(await Promise.all(responses.map(async (response) => [response.status, await response.text()])), [
    [200, signatureOf(a)],
    [200, signatureOf(b)],
    [200, ''],
  ])
  for (const wire of wires) assert.equal((await sender.receipt(signatureOf(wire), '?wait=20')).body.state, 'landed')
  const { accepted, landed, tipLamports, paths } = sender.sender.stats()
  assert.deepEqual([accepted, landed, tipLamports], [3, 3, '3000000'])
  assert.equal(paths.find(({ path }) => path === 'upstreams')?.landingRate, 1)
  assert.equal(sender.registry.value('sluice_sender_finished_total', { state: 'landed' }), 3)
  assert.equal(sender.registry.value('sluice_sender_tip_lamports_total'), 3_000_000)
  await until('nothing is pending', () => sender.sender.stats().pending === 0)
})

test('a version 1 transaction of up to 4096 bytes lands', async () => {
  await using sluice = await startChainAndSender()
  const payer = walletOf(0)
  const unsigned = encodeParsedTransaction({
    version: 1,
    signatures: [],
    message: new Uint8Array(),
    header: { numRequiredSignatures: 1, numReadonlySigned: 0, numReadonlyUnsigned: 2 },
    staticKeys: [payer.publicKey, (TIP_KEYS[0] as typeof payer).publicKey, SYSTEM_PROGRAM, MEMO_PROGRAM],
    recentBlockhash: decodeBase58(sluice.blockhash()),
    instructions: [
      { programIdIndex: 2, accounts: Uint8Array.of(0, 1), data: tipInstruction(payer).data },
      { programIdIndex: 3, accounts: new Uint8Array(), data: new Uint8Array(1800).fill(0x61) },
    ],
    addressTableLookups: [],
    config: {
      priorityFeeLamports: 5n,
      computeUnitLimit: 1_400_000,
      loadedAccountsDataSizeLimit: 1_000_000,
      heapSize: null,
    },
    wireLength: 0,
  })
  const signature = signEd25519(unsigned, payer)
  const response = await sluice.sender.send(Uint8Array.of(...unsigned, ...signature))
  assert.equal(response.result, encodeBase58(signature), response.text)
  const { body } = await sluice.sender.receipt(encodeBase58(signature), '?wait=20')
  assert.deepEqual([body.state, body.landed?.error, body.tip?.moved], ['landed', null, true])
})
