import assert from 'node:assert/strict'
import { after, before, describe, it } from 'node:test'
import {
  address,
  appendTransactionMessageInstructions,
  type Blockhash,
  compileTransactionMessage,
  createSolanaRpc,
  createTransactionMessage,
  generateKeyPairSigner,
  getBase64Decoder,
  getBase64EncodedWireTransaction,
  getCompiledTransactionMessageEncoder,
  getSignatureFromTransaction,
  isSolanaError,
  type KeyPairSigner,
  lamports,
  pipe,
  type Rpc,
  SOLANA_ERROR__JSON_RPC__SERVER_ERROR_MIN_CONTEXT_SLOT_NOT_REACHED,
  SOLANA_ERROR__JSON_RPC__SERVER_ERROR_SEND_TRANSACTION_PREFLIGHT_FAILURE,
  SOLANA_ERROR__TRANSACTION_ERROR__BLOCKHASH_NOT_FOUND,
  type SolanaRpcApi,
  setTransactionMessageFeePayerSigner,
  setTransactionMessageLifetimeUsingBlockhash,
  signTransactionMessageWithSigners,
} from '@solana/kit'
import { getAddMemoInstruction } from '@solana-program/memo'
import { getTransferSolInstruction } from '@solana-program/system'
import { startTestServer, type TestServer } from '../support/solana/rpc-server.ts'

const SOL = 1_000_000_000n
const TOO_FAR = 2n ** 53n - 1n

describe('@solana/kit over JSON-RPC', () => {
  let server: TestServer
  let rpc: Rpc<SolanaRpcApi>
  let payer: KeyPairSigner
  const to = address('4msgK65vdz5ADUAB3eTQGpF388NuQUAoknLxutUQJd5B')

  before(async () => {
    server = await startTestServer({ commitment: { confirmedSlots: 1, finalizedSlots: 2 } })
    await server.pass(3)
    rpc = createSolanaRpc(server.url) as unknown as Rpc<SolanaRpcApi>
    payer = await generateKeyPairSigner()
  })
  after(() => server[Symbol.asyncDispose]())

  async function build(blockhash?: Blockhash, memo = 'hello from kit') {
    const { value } = await rpc.getLatestBlockhash({ commitment: 'processed' }).send()
    const lifetime = blockhash ? { ...value, blockhash } : value
    return pipe(
      createTransactionMessage({ version: 0 }),
      (message) => setTransactionMessageFeePayerSigner(payer, message),
      (message) => setTransactionMessageLifetimeUsingBlockhash(lifetime, message),
      (message) =>
        appendTransactionMessageInstructions(
          [getTransferSolInstruction({ source: payer, destination: to, amount: SOL }), getAddMemoInstruction({ memo })],
          message,
        ),
    )
  }

  it('airdrops', async () => {
    const signature = await rpc.requestAirdrop(payer.address, lamports(10n * SOL)).send()
    await server.pass(1)
    const { value } = await rpc.getSignatureStatuses([signature]).send()
    const reached = server.chain.consensus === 'tower' ? ['processed'] : ['processed', 'confirmed', 'finalized']
    assert.ok(reached.includes(value[0]?.confirmationStatus ?? 'none'))
    assert.equal(value[0]?.err, null)
    await server.pass(2)
    assert.equal((await rpc.getBalance(payer.address).send()).value, 10n * SOL)
  })

  it('simulates, sends and reads back a transaction', async () => {
    const signed = await signTransactionMessageWithSigners(await build())
    const wire = getBase64EncodedWireTransaction(signed)
    const { value: simulated } = await rpc
      .simulateTransaction(wire, { commitment: 'processed', encoding: 'base64', innerInstructions: true })
      .send()
    assert.equal(simulated.err, null)
    assert.equal(typeof simulated.unitsConsumed, 'bigint')
    assert.equal(typeof simulated.loadedAccountsDataSize, 'number')
    assert.ok(simulated.logs?.some((line) => line.includes('hello from kit')))

    const signature = await rpc.sendTransaction(wire, { encoding: 'base64', preflightCommitment: 'processed' }).send()
    assert.equal(signature, getSignatureFromTransaction(signed))
    await server.pass(3)
    const landed = await rpc
      .getTransaction(signature, { encoding: 'jsonParsed', maxSupportedTransactionVersion: 0 })
      .send()
    assert.equal(landed?.version, 0)
    assert.equal(landed?.meta?.fee, 5000n)
    const [transfer, memo] = landed?.transaction.message.instructions ?? []
    assert.deepEqual(transfer && 'parsed' in transfer ? transfer.parsed : undefined, {
      type: 'transfer',
      info: { source: payer.address, destination: to, lamports: SOL },
    })
    assert.equal(memo && 'parsed' in memo ? memo.parsed : undefined, 'hello from kit')
    const [listed] = await rpc.getSignaturesForAddress(to, { limit: 1 }).send()
    assert.equal(listed?.signature, signature)
    assert.equal(listed?.memo, '[14] hello from kit')
    const block = await rpc
      .getBlock(landed?.slot ?? 0n, { maxSupportedTransactionVersion: 0, transactionDetails: 'signatures' })
      .send()
    assert.deepEqual(block?.signatures, [signature])
  })

  it('reports preflight failures with their cause and logs', async () => {
    const unknown = await signTransactionMessageWithSigners(
      await build('4msgK65vdz5ADUAB3eTQGpF388NuQUAoknLxutUQJd5B' as Blockhash),
    )
    await assert.rejects(
      rpc
        .sendTransaction(getBase64EncodedWireTransaction(unknown), {
          encoding: 'base64',
          preflightCommitment: 'processed',
        })
        .send(),
      (error: unknown) => {
        assert.ok(isSolanaError(error, SOLANA_ERROR__JSON_RPC__SERVER_ERROR_SEND_TRANSACTION_PREFLIGHT_FAILURE))
        assert.ok(isSolanaError(error.cause, SOLANA_ERROR__TRANSACTION_ERROR__BLOCKHASH_NOT_FOUND))
        assert.equal(error.context.unitsConsumed, 0n)
        assert.deepEqual(error.context.logs, [])
        return true
      },
    )
    await assert.rejects(rpc.getBalance(to, { minContextSlot: TOO_FAR }).send(), (error: unknown) => {
      assert.ok(isSolanaError(error, SOLANA_ERROR__JSON_RPC__SERVER_ERROR_MIN_CONTEXT_SLOT_NOT_REACHED))
      assert.equal(typeof error.context.contextSlot, 'bigint')
      return true
    })
  })

  it('returns the fee of a message', async () => {
    const message = compileTransactionMessage(await build())
    const text = getBase64Decoder().decode(getCompiledTransactionMessageEncoder().encode(message))
    const { value } = await rpc.getFeeForMessage(text as never, { commitment: 'processed' }).send()
    assert.equal(value, 5000n)
  })

  it('reads accounts in every encoding, integers exact', async () => {
    const clock = address('SysvarC1ock11111111111111111111111111111111')
    const parsed = await rpc.getAccountInfo(clock, { encoding: 'jsonParsed' }).send()
    assert.ok(parsed.value && 'parsed' in parsed.value.data)
    assert.equal(parsed.value.data.parsed.type, 'clock')
    const base64 = await rpc.getAccountInfo(clock, { encoding: 'base64' }).send()
    assert.equal(base64.value?.space, 40n)
    assert.equal((base64.value as { rentEpoch?: bigint } | null)?.rentEpoch, 18446744073709551615n)
    const many = await rpc.getMultipleAccounts([clock, payer.address], { encoding: 'base64+zstd' }).send()
    assert.equal(many.value.length, 2)
    const owned = await rpc
      .getProgramAccounts(address('Vote111111111111111111111111111111111111111'), {
        encoding: 'base64',
        withContext: true,
      })
      .send()
    assert.equal(owned.value.length, 1)
  })

  it('calls every method about the chain', async () => {
    const [epoch, schedule, version, nodes, votes, supply, largest, leaders] = await Promise.all([
      rpc.getEpochInfo().send(),
      rpc.getEpochSchedule().send(),
      rpc.getVersion().send(),
      rpc.getClusterNodes().send(),
      rpc.getVoteAccounts().send(),
      rpc.getSupply().send(),
      rpc.getLargestAccounts().send(),
      rpc.getSlotLeaders(0n, 2).send(),
    ])
    assert.equal(typeof epoch.absoluteSlot, 'bigint')
    assert.equal(schedule.slotsPerEpoch, 432_000n)
    assert.equal(version['solana-core'], '4.2.1')
    assert.equal(nodes[0]?.pubkey, server.chain.identity)
    assert.equal(typeof votes.current[0]?.activatedStake, 'bigint')
    assert.equal(supply.value.total, supply.value.circulating + supply.value.nonCirculating)
    assert.equal(largest.value.length, 20)
    assert.deepEqual(leaders, [server.chain.identity, server.chain.identity])
    assert.equal(await rpc.getHealth().send(), 'ok')
    assert.equal(await rpc.getGenesisHash().send(), server.chain.genesisHash)
    assert.equal((await rpc.getIdentity().send()).identity, server.chain.identity)
    assert.equal(typeof (await rpc.getInflationGovernor().send()).initial, 'number')
    assert.equal((await rpc.getInflationRate().send()).total, 0.08)
    assert.equal(await rpc.getMinimumBalanceForRentExemption(165n).send(), 2_039_280n)
    assert.ok((await rpc.getRecentPrioritizationFees().send()).length > 0)
    assert.equal(await rpc.getLeaderSchedule(TOO_FAR).send(), null)
  })
})
