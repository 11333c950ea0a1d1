import assert from 'node:assert/strict'
import { after, before, describe, it } from 'node:test'
import { type Address, address, createNoopSigner, type Instruction, isSignerRole, isWritableRole } from '@solana/kit'
import * as web3 from '@solana/web3.js'
import * as token from '@solana-program/token'
import { startTestServer, type TestServer } from '../support/solana/rpc-server.ts'

const SOL = web3.LAMPORTS_PER_SOL
const TOKEN_PROGRAM = new web3.PublicKey(token.TOKEN_PROGRAM_ADDRESS)
const addressOf = (key: web3.PublicKey) => address(key.toBase58())

/** Converts an instruction of the newer libraries for web3.js. */
function legacyOf({
  programAddress,
  accounts = [],
  data = new Uint8Array(),
}: Instruction): web3.TransactionInstruction {
  return new web3.TransactionInstruction({
    programId: new web3.PublicKey(programAddress),
    keys: accounts.map(({ address: account, role }) => ({
      pubkey: new web3.PublicKey(account),
      isSigner: isSignerRole(role),
      isWritable: isWritableRole(role),
    })),
    data: Buffer.from(data),
  })
}

/** web3.js validates every response: a missing or wrongly typed member throws. */
describe('@solana/web3.js 1.98 over JSON-RPC', () => {
  let server: TestServer
  let connection: web3.Connection
  const payer = web3.Keypair.generate()
  let landed = ''

  before(async () => {
    server = await startTestServer({ slotsPerEpoch: 1024, commitment: { confirmedSlots: 1, finalizedSlots: 2 } })
    await server.pass(3)
    connection = new web3.Connection(server.url, { commitment: 'confirmed', disableRetryOnRateLimit: true })
  })
  after(() => server[Symbol.asyncDispose]())

  /** Sends, ends the slot, and waits until it is confirmed by polling, without PubSub. */
  async function run(instructions: web3.TransactionInstruction[], signers: web3.Signer[] = []): Promise<string> {
    const { blockhash } = await connection.getLatestBlockhash('processed')
    const transaction = new web3.Transaction({ feePayer: payer.publicKey, recentBlockhash: blockhash }).add(
      ...instructions,
    )
    transaction.sign(payer, ...signers)
    const signature = await connection.sendRawTransaction(transaction.serialize(), { preflightCommitment: 'processed' })
    await server.pass(3)
    const { value } = await connection.getSignatureStatus(signature)
    assert.equal(value?.err, null)
    assert.equal(value?.confirmationStatus, 'finalized')
    return signature
  }

  it('airdrops, sends and finds the transfer', async () => {
    await connection.requestAirdrop(payer.publicKey, 20 * SOL)
    await server.pass(3)
    assert.equal(await connection.getBalance(payer.publicKey), 20 * SOL)
    const to = web3.Keypair.generate().publicKey
    landed = await run([web3.SystemProgram.transfer({ fromPubkey: payer.publicKey, toPubkey: to, lamports: SOL })])
    assert.equal(await connection.getBalance(to), SOL)
    const parsed = await connection.getParsedTransaction(landed, { maxSupportedTransactionVersion: 0 })
    const [transfer] = parsed?.transaction.message.instructions ?? []
    assert.equal(transfer && 'parsed' in transfer && transfer.parsed.info.lamports, SOL)
    const plain = await connection.getTransaction(landed, { maxSupportedTransactionVersion: 0 })
    assert.equal(plain?.meta?.fee, 5000)
    const [listed] = await connection.getSignaturesForAddress(to)
    assert.equal(listed?.signature, landed)
  })

  it('simulates', async () => {
    const { blockhash } = await connection.getLatestBlockhash()
    const instructions = [
      web3.SystemProgram.transfer({ fromPubkey: payer.publicKey, toPubkey: payer.publicKey, lamports: 1 }),
    ]
    const message = new web3.TransactionMessage({
      payerKey: payer.publicKey,
      recentBlockhash: blockhash,
      instructions,
    }).compileToV0Message()
    const transaction = new web3.VersionedTransaction(message)
    const { value } = await connection.simulateTransaction(transaction, {
      replaceRecentBlockhash: true,
      accounts: { encoding: 'base64', addresses: [payer.publicKey.toBase58()] },
    })
    assert.equal(value.err, null)
    assert.equal(value.unitsConsumed, 150)
    assert.equal(value.accounts?.length, 1)
    assert.equal((await connection.getFeeForMessage(message)).value, 5000)
    transaction.sign([payer])
    await assert.rejects(connection.sendTransaction(transaction, { minContextSlot: 1_000_000 }), /Minimum context slot/)
  })

  it('throws preflight failures with their logs', async () => {
    const { blockhash } = await connection.getLatestBlockhash('processed')
    const transaction = new web3.Transaction({ feePayer: payer.publicKey, recentBlockhash: blockhash }).add(
      web3.SystemProgram.transfer({ fromPubkey: payer.publicKey, toPubkey: payer.publicKey, lamports: 1e6 * SOL }),
    )
    transaction.sign(payer)
    await assert.rejects(connection.sendRawTransaction(transaction.serialize()), (error: unknown) => {
      assert.ok(error instanceof web3.SendTransactionError)
      assert.match(error.message, /custom program error: 0x1/)
      assert.ok(error.logs?.some((line) => line.includes('insufficient lamports')))
      return true
    })
  })

  it('creates a mint, mints, transfers, burns and closes', async () => {
    const mint = web3.Keypair.generate()
    const other = web3.Keypair.generate()
    const space = token.getMintSize()
    const lamports = await connection.getMinimumBalanceForRentExemption(space)
    const [mintAddress, owner, otherOwner] = [mint, payer, other].map(({ publicKey }) => addressOf(publicKey)) as [
      Address,
      Address,
      Address,
    ]
    await run(
      [
        web3.SystemProgram.createAccount({
          fromPubkey: payer.publicKey,
          newAccountPubkey: mint.publicKey,
          space,
          lamports,
          programId: TOKEN_PROGRAM,
        }),
        legacyOf(token.getInitializeMint2Instruction({ mint: mintAddress, decimals: 6, mintAuthority: owner })),
      ],
      [mint],
    )
    const accountOf = async (wallet: Address) => {
      const seeds = { owner: wallet, mint: mintAddress, tokenProgram: token.TOKEN_PROGRAM_ADDRESS }
      return (await token.findAssociatedTokenPda(seeds))[0]
    }
    const [ata, otherAta] = [await accountOf(owner), await accountOf(otherOwner)]
    const [mine, theirs] = [new web3.PublicKey(ata), new web3.PublicKey(otherAta)]
    const signer = createNoopSigner(owner)
    const instructions = [
      token.getCreateAssociatedTokenInstruction({ payer: signer, ata, owner, mint: mintAddress }),
      token.getCreateAssociatedTokenIdempotentInstruction({
        payer: signer,
        ata: otherAta,
        owner: otherOwner,
        mint: mintAddress,
      }),
      token.getMintToInstruction({ mint: mintAddress, token: ata, mintAuthority: owner, amount: 1_000_000n }),
      token.getTransferCheckedInstruction({
        source: ata,
        mint: mintAddress,
        destination: otherAta,
        authority: owner,
        amount: 250_000n,
        decimals: 6,
      }),
      token.getApproveInstruction({ source: ata, delegate: otherOwner, owner, amount: 5n }),
    ]
    const signature = await run(instructions.map(legacyOf))
    const dataOf = async (key: web3.PublicKey) => (await connection.getAccountInfo(key))?.data ?? new Uint8Array()
    assert.equal(token.getMintDecoder().decode(await dataOf(mint.publicKey)).supply, 1_000_000n)
    assert.equal(token.getTokenDecoder().decode(await dataOf(theirs)).amount, 250_000n)
    assert.equal((await connection.getTokenSupply(mint.publicKey)).value.uiAmount, 1)
    assert.equal((await connection.getTokenAccountBalance(mine)).value.uiAmountString, '0.75')
    assert.equal(
      (await connection.getTokenLargestAccounts(mint.publicKey)).value[0]?.address.toBase58(),
      mine.toBase58(),
    )
    const owned = await connection.getParsedTokenAccountsByOwner(payer.publicKey, { mint: mint.publicKey })
    assert.equal(owned.value[0]?.account.data.parsed.info.tokenAmount.amount, '750000')
    assert.equal(
      (await connection.getTokenAccountsByOwner(other.publicKey, { programId: TOKEN_PROGRAM })).value.length,
      1,
    )
    const transaction = await connection.getParsedTransaction(signature, { maxSupportedTransactionVersion: 0 })
    const programs = transaction?.transaction.message.instructions.map((each) =>
      'program' in each ? each.program : '',
    )
    assert.deepEqual(programs, [
      'spl-associated-token-account',
      'spl-associated-token-account',
      'spl-token',
      'spl-token',
      'spl-token',
    ])
    assert.deepEqual(
      transaction?.meta?.innerInstructions?.map(({ index }) => index),
      [0, 1],
    )
    assert.deepEqual(transaction?.meta?.postTokenBalances?.map(({ uiTokenAmount }) => uiTokenAmount.amount).sort(), [
      '250000',
      '750000',
    ])
    await run([
      legacyOf(token.getBurnInstruction({ account: ata, mint: mintAddress, authority: owner, amount: 750_000n })),
      legacyOf(token.getCloseAccountInstruction({ account: ata, destination: owner, owner })),
    ])
    assert.equal(await connection.getAccountInfo(mine), null)
  })

  it('calls every read method', async () => {
    const slot = await connection.getSlot('finalized')
    const unknown = web3.Keypair.generate().publicKey
    const calls: [string, () => Promise<unknown>][] = [
      ['getBlock', () => connection.getBlock(slot, { maxSupportedTransactionVersion: 0 })],
      ['getParsedBlock', () => connection.getParsedBlock(slot, { maxSupportedTransactionVersion: 0 })],
      [
        'getBlock accounts',
        () => connection.getBlock(slot, { maxSupportedTransactionVersion: 0, transactionDetails: 'accounts' }),
      ],
      ['getBlockSignatures', () => connection.getBlockSignatures(slot)],
      ['getBlocks', () => connection.getBlocks(0, slot)],
      ['getBlockTime', () => connection.getBlockTime(slot)],
      ['getBlockHeight', () => connection.getBlockHeight()],
      ['getBlockProduction', () => connection.getBlockProduction()],
      ['getClusterNodes', () => connection.getClusterNodes()],
      ['getEpochInfo', () => connection.getEpochInfo()],
      ['getEpochSchedule', () => connection.getEpochSchedule()],
      ['getFirstAvailableBlock', () => connection.getFirstAvailableBlock()],
      ['getGenesisHash', () => connection.getGenesisHash()],
      ['getInflationGovernor', () => connection.getInflationGovernor()],
      ['getInflationRate', () => connection.getInflationRate()],
      ['getLargestAccounts', () => connection.getLargestAccounts()],
      ['getLatestBlockhashAndContext', () => connection.getLatestBlockhashAndContext()],
      ['getLeaderSchedule', () => connection.getLeaderSchedule()],
      [
        'getMultipleParsedAccounts',
        () => connection.getMultipleParsedAccounts([web3.SYSVAR_CLOCK_PUBKEY, payer.publicKey]),
      ],
      ['getMultipleAccountsInfo', () => connection.getMultipleAccountsInfo([web3.SYSVAR_CLOCK_PUBKEY])],
      ['getParsedAccountInfo', () => connection.getParsedAccountInfo(web3.SYSVAR_RENT_PUBKEY)],
      ['getParsedProgramAccounts', () => connection.getParsedProgramAccounts(web3.VOTE_PROGRAM_ID)],
      ['getProgramAccounts', () => connection.getProgramAccounts(web3.STAKE_CONFIG_ID)],
      ['getRecentPerformanceSamples', () => connection.getRecentPerformanceSamples(5)],
      ['getRecentPrioritizationFees', () => connection.getRecentPrioritizationFees()],
      ['getSignatureStatuses', () => connection.getSignatureStatuses([landed], { searchTransactionHistory: true })],
      ['getSlotLeader', () => connection.getSlotLeader()],
      ['getSlotLeaders', () => connection.getSlotLeaders(0, 3)],
      ['getStakeMinimumDelegation', () => connection.getStakeMinimumDelegation()],
      ['getSupply', () => connection.getSupply()],
      ['getTransactionCount', () => connection.getTransactionCount()],
      ['getTransactions', () => connection.getTransactions([landed], { maxSupportedTransactionVersion: 0 })],
      [
        'getParsedTransactions',
        () => connection.getParsedTransactions([landed], { maxSupportedTransactionVersion: 0 }),
      ],
      ['getVersion', () => connection.getVersion()],
      ['getVoteAccounts', () => connection.getVoteAccounts()],
      ['isBlockhashValid', async () => connection.isBlockhashValid((await connection.getLatestBlockhash()).blockhash)],
      ['getMinimumLedgerSlot', () => connection.getMinimumLedgerSlot()],
      ['getNonce', () => connection.getNonce(unknown)],
    ]
    for (const [name, call] of calls) await assert.doesNotReject(call, name)
    await assert.rejects(connection.getInflationReward([payer.publicKey]), /Block not available/)
    await assert.rejects(connection.getStakeActivation(payer.publicKey), /Method not found|fail/i)
  })
})
