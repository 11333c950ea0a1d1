import assert from 'node:assert/strict'
import { after, before, describe, it } from 'node:test'
import {
  type Address,
  address,
  airdropFactory,
  appendTransactionMessageInstructions,
  createSolanaRpc,
  createSolanaRpcSubscriptions,
  createSolanaRpcSubscriptions_UNSTABLE,
  createTransactionMessage,
  generateKeyPairSigner,
  getSignatureFromTransaction,
  type KeyPairSigner,
  lamports,
  pipe,
  sendAndConfirmTransactionFactory,
  setTransactionMessageFeePayerSigner,
  setTransactionMessageLifetimeUsingBlockhash,
  signTransactionMessageWithSigners,
} from '@solana/kit'
import { getAddMemoInstruction } from '@solana-program/memo'
import { getTransferSolInstruction } from '@solana-program/system'
import type { Localnet } from '../../src/localnet/service.ts'
import { startQuickLocalnet } from '../support/localnet.ts'

const SOL = 1_000_000_000n
const SYSTEM = address('11111111111111111111111111111111')

/** Unmodified kit, both its clients; every subscription it knows. */
describe('@solana/kit over the PubSub door', () => {
  let node: Localnet
  let rpc: ReturnType<typeof createSolanaRpc>
  let subscriptions: ReturnType<typeof createSolanaRpcSubscriptions_UNSTABLE>
  let payer: KeyPairSigner
  const stop = new AbortController()
  const abortSignal = stop.signal

  before(async () => {
    node = await startQuickLocalnet()
    rpc = createSolanaRpc(`http://127.0.0.1:${node.rpc.port}`)
    subscriptions = createSolanaRpcSubscriptions_UNSTABLE(`ws://127.0.0.1:${node.ws.port}`)
    payer = await generateKeyPairSigner()
  })
  after(async () => {
    stop.abort()
    await node[Symbol.asyncDispose]()
  })

  async function sign(to: Address, amount: bigint) {
    const { value: blockhash } = await rpc.getLatestBlockhash({ commitment: 'processed' }).send()
    const message = pipe(
      createTransactionMessage({ version: 0 }),
      (tx) => setTransactionMessageFeePayerSigner(payer, tx),
      (tx) => setTransactionMessageLifetimeUsingBlockhash(blockhash, tx),
      (tx) =>
        appendTransactionMessageInstructions(
          [
            getTransferSolInstruction({ source: payer, destination: to, amount }),
            getAddMemoInstruction({ memo: 'watched' }),
          ],
          tx,
        ),
    )
    return signTransactionMessageWithSigners(message)
  }

  const sendAndConfirm = (transaction: Awaited<ReturnType<typeof sign>>) =>
    sendAndConfirmTransactionFactory({ rpc, rpcSubscriptions: createSolanaRpcSubscriptions(wsUrl()) } as never)(
      transaction as never,
      { commitment: 'confirmed', abortSignal },
    )
  const wsUrl = () => `ws://127.0.0.1:${node.ws.port}`

  it('airdrops and sends, confirmed through subscriptions', async () => {
    const airdrop = airdropFactory({ rpc, rpcSubscriptions: createSolanaRpcSubscriptions(wsUrl()) } as never)
    await airdrop({
      commitment: 'confirmed',
      recipientAddress: payer.address,
      lamports: lamports(10n * SOL),
      abortSignal,
    })
    const { value } = await rpc.getBalance(payer.address, { commitment: 'confirmed' }).send()
    assert.equal(value, 10n * SOL)
    await sendAndConfirm(await sign((await generateKeyPairSigner()).address, SOL))
  })

  it('tells account, program, logs, signature and block of a transfer', async () => {
    const to = (await generateKeyPairSigner()).address
    const transaction = await sign(to, SOL)
    const signature = getSignatureFromTransaction(transaction)
    const confirmed = { commitment: 'confirmed' } as const
    const watch = {
      account: subscriptions.accountNotifications(to, { ...confirmed, encoding: 'base64' }),
      program: subscriptions.programNotifications(SYSTEM, { ...confirmed, encoding: 'base64' }),
      logs: subscriptions.logsNotifications({ mentions: [to] }, confirmed),
      allLogs: subscriptions.logsNotifications('all', confirmed),
      signature: subscriptions.signatureNotifications(signature, { ...confirmed, enableReceivedNotification: true }),
      block: subscriptions.blockNotifications(
        { mentionsAccountOrProgram: to },
        {
          ...confirmed,
          encoding: 'json',
          maxSupportedTransactionVersion: 0,
          showRewards: true,
          transactionDetails: 'full',
        },
      ),
    }
    // kit drops what comes before the first call of `next`.
    const streams: Record<string, { first: Promise<IteratorResult<never>>; next(): Promise<IteratorResult<never>> }> =
      {}
    for (const [name, pending] of Object.entries(watch)) {
      const stream = (await pending.subscribe({ abortSignal })) as AsyncIterable<never>
      const iterator = stream[Symbol.asyncIterator]()
      streams[name] = { first: iterator.next(), next: () => iterator.next() }
    }
    const firstOf = async (name: string) => (await streams[name]?.first)?.value as never
    await sendAndConfirm(transaction)

    const account = (await firstOf('account')) as {
      value: { lamports: bigint; rentEpoch: bigint }
    }
    assert.equal(account.value.lamports, SOL)
    assert.equal(account.value.rentEpoch, 18446744073709551615n)
    const program = (await firstOf('program')) as { value: { pubkey: string } }
    assert.equal(typeof program.value.pubkey, 'string')
    for (const name of ['logs', 'allLogs']) {
      const logs = (await firstOf(name)) as { value: { signature: string; logs: string[] } }
      assert.equal(logs.value.signature, signature)
      assert.ok(logs.value.logs.some((line) => line.includes('watched')))
    }
    const received = (await firstOf('signature')) as { value: unknown }
    assert.equal(received.value, 'receivedSignature')
    const landed = (await streams['signature']?.next())?.value as never as { value: unknown }
    assert.deepEqual(landed.value, { err: null })
    const block = (await firstOf('block')) as {
      value: {
        slot: bigint
        err: null
        block: { transactions: { transaction: { signatures: string[] }; version: number }[] }
      }
    }
    assert.equal(block.value.err, null)
    assert.deepEqual(
      block.value.block.transactions.map((each) => [each.version, each.transaction.signatures[0]]),
      [[0, signature]],
    )
  })

  it('tells slots, roots, slot updates and votes as they come', async () => {
    const slots = await subscriptions.slotNotifications().subscribe({ abortSignal })
    const seen: bigint[] = []
    for await (const { slot, parent, root } of slots) {
      assert.equal(parent, slot - 1n)
      assert.ok(root < slot)
      seen.push(slot)
      if (seen.length === 3) break
    }
    assert.deepEqual(seen, [seen[0], (seen[0] as bigint) + 1n, (seen[0] as bigint) + 2n])

    const roots = await subscriptions.rootNotifications().subscribe({ abortSignal })
    for await (const root of roots) {
      assert.equal(typeof root, 'bigint')
      break
    }

    const missing = new Set([
      'firstShredReceived',
      'createdBank',
      'completed',
      'frozen',
      'optimisticConfirmation',
      'root',
    ])
    const updates = await subscriptions.slotsUpdatesNotifications().subscribe({ abortSignal })
    for await (const update of updates) {
      assert.deepEqual([typeof update.slot, typeof update.timestamp], ['bigint', 'bigint'])
      missing.delete(update.type)
      if (missing.size === 0) break
    }

    const votes = await subscriptions.voteNotifications().subscribe({ abortSignal })
    for await (const vote of votes) {
      assert.equal(vote.votePubkey, node.chain.voteAccount)
      assert.deepEqual(
        vote.slots.map((slot) => typeof slot),
        ['bigint'],
      )
      assert.equal(typeof vote.timestamp, 'bigint')
      break
    }
  })
})
