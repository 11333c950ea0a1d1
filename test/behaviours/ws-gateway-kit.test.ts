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
import { startWsGateway, type WsGateway } from '../support/ws-gateway.ts'

const SOL = 1_000_000_000n
const SYSTEM = address('11111111111111111111111111111111')

/** Unmodified kit, which can set no header on a WebSocket: it comes in by a ticket. */
describe('@solana/kit through the gateway with a ticket', () => {
  let node: Localnet
  let ws: WsGateway
  let rpc: ReturnType<typeof createSolanaRpc>
  let subscriptions: ReturnType<typeof createSolanaRpcSubscriptions_UNSTABLE>
  let plain: ReturnType<typeof createSolanaRpcSubscriptions>
  let payer: KeyPairSigner
  const stop = new AbortController()
  const abortSignal = stop.signal

  before(async () => {
    node = await startQuickLocalnet()
    ws = await startWsGateway([
      { name: 'one', rpc: `http://127.0.0.1:${node.rpc.port}`, ws: `ws://127.0.0.1:${node.ws.port}` },
    ])
    const { token } = await ws.gateway.subscribe({})
    const headers = { 'x-token': token }
    const answer = await fetch(`${ws.gateway.url}/v1/ws-ticket`, { method: 'POST', headers })
    const { ticket } = (await answer.json()) as { ticket: string }
    rpc = createSolanaRpc(ws.gateway.url, { headers })
    subscriptions = createSolanaRpcSubscriptions_UNSTABLE(`${ws.url}?ticket=${ticket}`)
    plain = createSolanaRpcSubscriptions(`${ws.url}?ticket=${ticket}`)
    payer = await generateKeyPairSigner()
  })
  after(async () => {
    stop.abort()
    await ws[Symbol.asyncDispose]()
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
    sendAndConfirmTransactionFactory({ rpc, rpcSubscriptions: plain } as never)(transaction as never, {
      commitment: 'confirmed',
      abortSignal,
    })

  it('airdrops, sends and confirms', async () => {
    const airdrop = airdropFactory({ rpc, rpcSubscriptions: plain } as never)
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

  it('hears of a transfer by account, program, logs, signature and block', async () => {
    const to = (await generateKeyPairSigner()).address
    const transaction = await sign(to, SOL)
    const signature = getSignatureFromTransaction(transaction)
    const confirmed = { commitment: 'confirmed' } as const
    const watch = {
      account: subscriptions.accountNotifications(to, { ...confirmed, encoding: 'base64' }),
      program: subscriptions.programNotifications(SYSTEM, { ...confirmed, encoding: 'base64' }),
      logs: subscriptions.logsNotifications({ mentions: [to] }, confirmed),
      signature: subscriptions.signatureNotifications(signature, confirmed),
      block: subscriptions.blockNotifications(
        { mentionsAccountOrProgram: to },
        { ...confirmed, encoding: 'json', maxSupportedTransactionVersion: 0, transactionDetails: 'full' },
      ),
    }
    // kit drops what comes before the first call of `next`.
    const first: Record<string, Promise<IteratorResult<never>>> = {}
    for (const [name, pending] of Object.entries(watch)) {
      const stream = (await pending.subscribe({ abortSignal })) as AsyncIterable<never>
      first[name] = stream[Symbol.asyncIterator]().next()
    }
    await sendAndConfirm(transaction)
    const firstOf = async (name: string) =>
      ((await first[name])?.value as { value: unknown } | undefined)?.value as never

    const account = (await firstOf('account')) as { lamports: bigint; rentEpoch: bigint }
    assert.deepEqual([account.lamports, account.rentEpoch], [SOL, 18446744073709551615n])
    assert.equal(typeof ((await firstOf('program')) as { pubkey: string }).pubkey, 'string')
    assert.equal(((await firstOf('logs')) as { signature: string }).signature, signature)
    assert.deepEqual(await firstOf('signature'), { err: null })
    const { block } = (await firstOf('block')) as {
      block: { transactions: { transaction: { signatures: string[] } }[] }
    }
    assert.deepEqual(
      block.transactions.map((each) => each.transaction.signatures[0]),
      [signature],
    )
  })

  it('hears slots, roots, slot updates and votes', async () => {
    const seen: bigint[] = []
    for await (const { slot } of await subscriptions.slotNotifications().subscribe({ abortSignal })) {
      if (seen.push(slot) === 3) break
    }
    assert.deepEqual(seen, [seen[0], (seen[0] as bigint) + 1n, (seen[0] as bigint) + 2n])
    for await (const root of await subscriptions.rootNotifications().subscribe({ abortSignal })) {
      assert.equal(typeof root, 'bigint')
      break
    }
    for await (const update of await subscriptions.slotsUpdatesNotifications().subscribe({ abortSignal })) {
      assert.equal(typeof update.slot, 'bigint')
      break
    }
    for await (const vote of await subscriptions.voteNotifications().subscribe({ abortSignal })) {
      assert.equal(vote.votePubkey, node.chain.voteAccount)
      break
    }
  })
})
