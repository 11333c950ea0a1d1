import assert from 'node:assert/strict'
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
  lamports,
  pipe,
  sendAndConfirmTransactionFactory,
  setTransactionMessageFeePayerSigner,
  setTransactionMessageLifetimeUsingBlockhash,
  signTransactionMessageWithSigners,
} from '@solana/kit'
import { getAddMemoInstruction } from '@solana-program/memo'
import { getTransferSolInstruction } from '@solana-program/system'
import type { Chain } from '../../../src/localnet/chain/model.ts'

const SOL = 1_000_000_000n
const SYSTEM = address('11111111111111111111111111111111')
const CONFIRMED = { commitment: 'confirmed' } as const

export type KitLocation = { readonly rpc: string; readonly ws: string; readonly headers?: { 'x-token': string } }

/** Flows with unmodified kit, run against a node and against a gateway so that both are tested alike. */
export async function createKitFlows({ rpc: rpcUrl, ws: wsUrl, headers }: KitLocation) {
  const stop = new AbortController()
  const abortSignal = stop.signal
  const rpc = headers === undefined ? createSolanaRpc(rpcUrl) : createSolanaRpc(rpcUrl, { headers })
  const subscriptions = createSolanaRpcSubscriptions_UNSTABLE(wsUrl)
  const confirming = { rpc, rpcSubscriptions: createSolanaRpcSubscriptions(wsUrl) } as never
  const payer = await generateKeyPairSigner()

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
    sendAndConfirmTransactionFactory(confirming)(transaction as never, { ...CONFIRMED, abortSignal })

  return {
    abortSignal,
    subscriptions,
    /** Ends every subscription. */
    stop: () => stop.abort(),

    async airdropAndSend(): Promise<void> {
      const airdrop = airdropFactory(confirming)
      await airdrop({ ...CONFIRMED, recipientAddress: payer.address, lamports: lamports(10n * SOL), abortSignal })
      const { value } = await rpc.getBalance(payer.address, CONFIRMED).send()
      assert.equal(value, 10n * SOL)
      await sendAndConfirm(await sign((await generateKeyPairSigner()).address, SOL))
    },

    /** Sends a transfer with every kind of subscription open: returns its signature and each stream with its first notification. */
    async watchTransfer() {
      const to = (await generateKeyPairSigner()).address
      const transaction = await sign(to, SOL)
      const signature = getSignatureFromTransaction(transaction)
      const watch = {
        account: subscriptions.accountNotifications(to, { ...CONFIRMED, encoding: 'base64' }),
        program: subscriptions.programNotifications(SYSTEM, { ...CONFIRMED, encoding: 'base64' }),
        logs: subscriptions.logsNotifications({ mentions: [to] }, CONFIRMED),
        allLogs: subscriptions.logsNotifications('all', CONFIRMED),
        signature: subscriptions.signatureNotifications(signature, { ...CONFIRMED, enableReceivedNotification: true }),
        block: subscriptions.blockNotifications(
          { mentionsAccountOrProgram: to },
          {
            ...CONFIRMED,
            encoding: 'json',
            maxSupportedTransactionVersion: 0,
            showRewards: true,
            transactionDetails: 'full',
          },
        ),
      }
      // kit drops notifications before the first call of `next`.
      const streams: Record<string, { first: Promise<IteratorResult<never>>; next(): Promise<IteratorResult<never>> }> =
        {}
      for (const [name, pending] of Object.entries(watch)) {
        const stream = (await pending.subscribe({ abortSignal })) as AsyncIterable<never>
        const iterator = stream[Symbol.asyncIterator]()
        streams[name] = { first: iterator.next(), next: () => iterator.next() }
      }
      await sendAndConfirm(transaction)
      return {
        signature,
        first: async (name: keyof typeof watch) => (await streams[name]?.first)?.value as never,
        next: async (name: keyof typeof watch) => (await streams[name]?.next())?.value as never,
      }
    },
  }
}

export type KitFlows = Awaited<ReturnType<typeof createKitFlows>>

/** Checks the notification of the transfer in every kind of subscription. */
export async function checkTransferNotifications(flows: KitFlows): Promise<void> {
  const { signature, first, next } = await flows.watchTransfer()
  const account = (await first('account')) as { value: { lamports: bigint; rentEpoch: bigint } }
  assert.deepEqual([account.value.lamports, account.value.rentEpoch], [SOL, 18446744073709551615n])
  const program = (await first('program')) as { value: { pubkey: string } }
  assert.equal(typeof program.value.pubkey, 'string')
  for (const name of ['logs', 'allLogs'] as const) {
    const logs = (await first(name)) as { value: { signature: string; logs: string[] } }
    assert.equal(logs.value.signature, signature)
    assert.ok(logs.value.logs.some((line) => line.includes('watched')))
  }
  assert.equal(((await first('signature')) as { value: unknown }).value, 'receivedSignature')
  assert.deepEqual(((await next('signature')) as { value: unknown }).value, { err: null })
  const block = (await first('block')) as {
    value: { err: null; block: { transactions: { transaction: { signatures: string[] }; version: number }[] } }
  }
  assert.equal(block.value.err, null)
  assert.deepEqual(
    block.value.block.transactions.map((each) => [each.version, each.transaction.signatures[0]]),
    [[0, signature]],
  )
}

/** Checks slots, roots, slot updates of every kind, and votes. Alpenglow has no votes, and a slot is reported for each of its banks. */
export async function checkChainNotifications(
  { subscriptions, abortSignal }: KitFlows,
  { voteAccount, consensus }: Pick<Chain, 'voteAccount' | 'consensus'>,
): Promise<void> {
  const seen = new Set<bigint>()
  for await (const { slot, parent, root } of await subscriptions.slotNotifications().subscribe({ abortSignal })) {
    assert.ok(parent === slot - 1n || (consensus === 'alpenglow' && parent === slot - 2n))
    assert.ok(root < slot)
    assert.ok(consensus === 'alpenglow' || !seen.has(slot))
    if (seen.add(slot).size === 3) break
  }
  const [first = 0n] = seen
  assert.deepEqual([...seen], [first, first + 1n, first + 2n])
  for await (const root of await subscriptions.rootNotifications().subscribe({ abortSignal })) {
    assert.equal(typeof root, 'bigint')
    break
  }
  const kinds = ['firstShredReceived', 'createdBank', 'completed', 'frozen', 'optimisticConfirmation', 'root']
  const missing = new Set(kinds)
  for await (const update of await subscriptions.slotsUpdatesNotifications().subscribe({ abortSignal })) {
    assert.deepEqual([typeof update.slot, typeof update.timestamp], ['bigint', 'bigint'])
    missing.delete(update.type)
    if (missing.size === 0) break
  }
  if (consensus === 'alpenglow') return
  for await (const vote of await subscriptions.voteNotifications().subscribe({ abortSignal })) {
    assert.equal(vote.votePubkey, voteAccount)
    assert.ok(vote.slots.length > 0 && vote.slots.every((slot) => typeof slot === 'bigint'))
    assert.equal(typeof vote.timestamp, 'bigint')
    break
  }
}
