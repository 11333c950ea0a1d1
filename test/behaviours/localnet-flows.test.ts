import assert from 'node:assert/strict'
import { createRequire } from 'node:module'
import { after, before, describe, it } from 'node:test'
import type * as Anchor from '@coral-xyz/anchor'
import {
  address,
  airdropFactory,
  appendTransactionMessageInstructions,
  assertIsTransactionWithDurableNonceLifetime,
  compressTransactionMessageUsingAddressLookupTables,
  createKeyPairSignerFromBytes,
  createSolanaRpc,
  createSolanaRpcSubscriptions,
  createTransactionMessage,
  fetchAddressesForLookupTables,
  generateKeyPairSigner,
  getSignatureFromTransaction,
  type Instruction,
  type KeyPairSigner,
  lamports,
  type Nonce,
  pipe,
  sendAndConfirmDurableNonceTransactionFactory,
  sendAndConfirmTransactionFactory,
  setTransactionMessageFeePayerSigner,
  setTransactionMessageLifetimeUsingBlockhash,
  setTransactionMessageLifetimeUsingDurableNonce,
  signTransactionMessageWithSigners,
} from '@solana/kit'
import {
  AddressLookupTableProgram,
  Connection,
  Keypair,
  LAMPORTS_PER_SOL,
  SystemProgram,
  sendAndConfirmTransaction,
  Transaction,
} from '@solana/web3.js'
import {
  fetchNonce,
  getCreateAccountInstruction,
  getInitializeNonceAccountInstruction,
  getNonceSize,
  getTransferSolInstruction,
  SYSTEM_PROGRAM_ADDRESS,
} from '@solana-program/system'
import {
  fetchToken,
  findAssociatedTokenPda,
  getCreateAssociatedTokenIdempotentInstruction,
  getInitializeMint2Instruction,
  getMintSize,
  getMintToInstruction,
  getTransferCheckedInstruction,
  TOKEN_PROGRAM_ADDRESS,
} from '@solana-program/token'
import type { Localnet } from '../../src/localnet/service.ts'
import { endSocket } from '../support/gateway/web3js.ts'
import { startQuickLocalnet } from '../support/solana/localnet.ts'

// A CommonJS package that exports Wallet only to require.
const anchor = createRequire(import.meta.url)('@coral-xyz/anchor') as typeof Anchor

const SOL = 1_000_000_000n

/** Flows with unmodified clients: nonces, lookup tables, tokens, an Anchor provider. */
describe('flows of Solana clients on localnet', () => {
  let node: Localnet
  let connection: Connection
  let rpc: ReturnType<typeof createSolanaRpc>
  let rpcSubscriptions: ReturnType<typeof createSolanaRpcSubscriptions>
  let payer: KeyPairSigner
  let keypair: Keypair
  const abortSignal = AbortSignal.timeout(60_000)

  before(async () => {
    node = await startQuickLocalnet()
    const [http, ws] = [`http://127.0.0.1:${node.rpc.port}`, `ws://127.0.0.1:${node.ws.port}`]
    connection = new Connection(http, { commitment: 'confirmed', wsEndpoint: ws })
    rpc = createSolanaRpc(http)
    rpcSubscriptions = createSolanaRpcSubscriptions(ws)
    keypair = Keypair.generate()
    payer = await createKeyPairSignerFromBytes(keypair.secretKey)
    const airdrop = airdropFactory({ rpc, rpcSubscriptions } as never)
    await airdrop({
      commitment: 'confirmed',
      recipientAddress: payer.address,
      lamports: lamports(100n * SOL),
      abortSignal,
    })
  })
  after(async () => {
    endSocket(connection)
    await node[Symbol.asyncDispose]()
  })

  async function withBlockhash(instructions: Instruction[]) {
    const { value } = await rpc.getLatestBlockhash().send()
    return pipe(
      createTransactionMessage({ version: 0 }),
      (message) => setTransactionMessageFeePayerSigner(payer, message),
      (message) => setTransactionMessageLifetimeUsingBlockhash(value, message),
      (message) => appendTransactionMessageInstructions(instructions, message),
    )
  }

  async function send(instructions: Instruction[]): Promise<void> {
    const transaction = await signTransactionMessageWithSigners(await withBlockhash(instructions))
    const sendAndConfirm = sendAndConfirmTransactionFactory({ rpc, rpcSubscriptions } as never)
    await sendAndConfirm(transaction as never, { commitment: 'confirmed', abortSignal })
  }

  it('kit: a durable nonce outlives a blockhash and is used once', async () => {
    const nonceAccount = await generateKeyPairSigner()
    const space = BigInt(getNonceSize())
    const rent = await rpc.getMinimumBalanceForRentExemption(space).send()
    await send([
      getCreateAccountInstruction({
        payer,
        newAccount: nonceAccount,
        lamports: rent,
        space,
        programAddress: SYSTEM_PROGRAM_ADDRESS,
      }),
      getInitializeNonceAccountInstruction({ nonceAccount: nonceAccount.address, nonceAuthority: payer.address }),
    ])
    const { data } = await fetchNonce(rpc, nonceAccount.address, { commitment: 'confirmed' })
    const to = await generateKeyPairSigner()
    const message = pipe(
      createTransactionMessage({ version: 0 }),
      (draft) => setTransactionMessageFeePayerSigner(payer, draft),
      (draft) =>
        setTransactionMessageLifetimeUsingDurableNonce(
          {
            nonce: String(data.blockhash) as Nonce,
            nonceAccountAddress: nonceAccount.address,
            nonceAuthorityAddress: payer.address,
          },
          draft,
        ),
      (draft) =>
        appendTransactionMessageInstructions(
          [getTransferSolInstruction({ source: payer, destination: to.address, amount: SOL })],
          draft,
        ),
    )
    const transaction = await signTransactionMessageWithSigners(message)
    assertIsTransactionWithDurableNonceLifetime(transaction)
    const sendWithNonce = sendAndConfirmDurableNonceTransactionFactory({ rpc, rpcSubscriptions } as never)
    await sendWithNonce(transaction as never, { commitment: 'confirmed', abortSignal })
    assert.equal((await rpc.getBalance(to.address, { commitment: 'confirmed' }).send()).value, SOL)
    const after = await fetchNonce(rpc, nonceAccount.address, { commitment: 'confirmed' })
    assert.notEqual(after.data.blockhash, data.blockhash, 'the nonce was advanced')
  })

  it('kit: loads addresses from a lookup table', async () => {
    const [first, second] = [Keypair.generate(), Keypair.generate()]
    const [create, table] = AddressLookupTableProgram.createLookupTable({
      authority: keypair.publicKey,
      payer: keypair.publicKey,
      recentSlot: (await connection.getSlot('finalized')) - 1,
    })
    const extend = AddressLookupTableProgram.extendLookupTable({
      payer: keypair.publicKey,
      authority: keypair.publicKey,
      lookupTable: table,
      addresses: [first.publicKey, second.publicKey],
    })
    await sendAndConfirmTransaction(connection, new Transaction().add(create, extend), [keypair])
    const tables = await fetchAddressesForLookupTables([address(table.toBase58())], rpc, { commitment: 'confirmed' })
    const draft = await withBlockhash(
      [first, second].map((to) =>
        getTransferSolInstruction({ source: payer, destination: address(to.publicKey.toBase58()), amount: SOL }),
      ),
    )
    const transaction = await signTransactionMessageWithSigners(
      compressTransactionMessageUsingAddressLookupTables(draft, tables),
    )
    const sendAndConfirm = sendAndConfirmTransactionFactory({ rpc, rpcSubscriptions } as never)
    await sendAndConfirm(transaction as never, { commitment: 'confirmed', abortSignal })
    const landed = await rpc
      .getTransaction(getSignatureFromTransaction(transaction), {
        commitment: 'confirmed',
        encoding: 'json',
        maxSupportedTransactionVersion: 0,
      })
      .send()
    assert.deepEqual(
      new Set(landed?.meta?.loadedAddresses.writable),
      new Set([first, second].map((key) => key.publicKey.toBase58())),
    )
    assert.equal(await connection.getBalance(second.publicKey), LAMPORTS_PER_SOL)
  })

  it('kit: creates a mint and two token accounts, and makes a checked transfer', async () => {
    const mint = await generateKeyPairSigner()
    const holder = await generateKeyPairSigner()
    const space = BigInt(getMintSize())
    const rent = await rpc.getMinimumBalanceForRentExemption(space).send()
    const accountOf = async (owner: KeyPairSigner) =>
      (
        await findAssociatedTokenPda({ owner: owner.address, mint: mint.address, tokenProgram: TOKEN_PROGRAM_ADDRESS })
      )[0]
    const [mine, theirs] = [await accountOf(payer), await accountOf(holder)]
    await send([
      getCreateAccountInstruction({
        payer,
        newAccount: mint,
        lamports: rent,
        space,
        programAddress: TOKEN_PROGRAM_ADDRESS,
      }),
      getInitializeMint2Instruction({ mint: mint.address, decimals: 6, mintAuthority: payer.address }),
      getCreateAssociatedTokenIdempotentInstruction({ payer, ata: mine, owner: payer.address, mint: mint.address }),
      getCreateAssociatedTokenIdempotentInstruction({ payer, ata: theirs, owner: holder.address, mint: mint.address }),
      getMintToInstruction({ mint: mint.address, token: mine, mintAuthority: payer, amount: 5_000_000n }),
      getTransferCheckedInstruction({
        source: mine,
        mint: mint.address,
        destination: theirs,
        authority: payer,
        amount: 2_000_000n,
        decimals: 6,
      }),
    ])
    assert.equal((await fetchToken(rpc, theirs, { commitment: 'confirmed' })).data.amount, 2_000_000n)
    const { value } = await rpc.getTokenSupply(mint.address, { commitment: 'confirmed' }).send()
    assert.equal(value.uiAmountString, '5')
  })

  it('Anchor: its provider sends, confirms, simulates and reports a failure', async () => {
    const provider = new anchor.AnchorProvider(connection, new anchor.Wallet(keypair), { commitment: 'confirmed' })
    const to = Keypair.generate().publicKey
    const transfer = SystemProgram.transfer({ fromPubkey: keypair.publicKey, toPubkey: to, lamports: LAMPORTS_PER_SOL })
    const signature = await provider.sendAndConfirm(new Transaction().add(transfer))
    assert.match(signature, /^[1-9A-HJ-NP-Za-km-z]{80,90}$/)
    assert.equal(await connection.getBalance(to), LAMPORTS_PER_SOL)
    const simulated = await provider.simulate(new Transaction().add(transfer))
    assert.ok(simulated.logs?.some((line) => line.includes('success')))
    const tooMuch = SystemProgram.transfer({ fromPubkey: keypair.publicKey, toPubkey: to, lamports: 1e12 })
    await assert.rejects(provider.sendAndConfirm(new Transaction().add(tooMuch)), /0x1|insufficient/i)
  })
})
