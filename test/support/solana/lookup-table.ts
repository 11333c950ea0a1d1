import assert from 'node:assert/strict'
import * as web3 from '@solana/web3.js'
import { until } from '../../../src/platform/process/test-wait.ts'

/** An address lookup table on a chain. */
export type LookupTable = {
  readonly key: web3.PublicKey
  /** Adds so many addresses. */
  extend(count: number): Promise<void>
}

/** Creates an empty table with a payer of its own. Resolves when it is confirmed. */
export async function createLookupTable(url: string): Promise<LookupTable> {
  const connection = new web3.Connection(url, 'confirmed')
  const payer = web3.Keypair.generate()
  await connection.requestAirdrop(payer.publicKey, 5 * web3.LAMPORTS_PER_SOL)
  await until('the airdrop has landed', async () => (await connection.getBalance(payer.publicKey)) > 0)

  async function send(instruction: web3.TransactionInstruction): Promise<void> {
    const { blockhash } = await connection.getLatestBlockhash()
    const message = new web3.TransactionMessage({
      payerKey: payer.publicKey,
      recentBlockhash: blockhash,
      instructions: [instruction],
    }).compileToV0Message()
    const transaction = new web3.VersionedTransaction(message)
    transaction.sign([payer])
    const signature = await connection.sendTransaction(transaction)
    await until('it is confirmed', async () => {
      const { value } = await connection.getSignatureStatus(signature)
      assert.equal(value?.err ?? null, null)
      return value?.confirmationStatus === 'confirmed' || value?.confirmationStatus === 'finalized'
    })
  }

  const owner = { authority: payer.publicKey, payer: payer.publicKey }
  let recentSlot = -1
  await until('a slot before the last final one', async () => {
    recentSlot = (await connection.getSlot('finalized')) - 1
    return recentSlot > 0
  })
  const [create, key] = web3.AddressLookupTableProgram.createLookupTable({ ...owner, recentSlot })
  await send(create)
  return {
    key,
    extend(count) {
      const addresses = Array.from({ length: count }, () => web3.Keypair.generate().publicKey)
      return send(web3.AddressLookupTableProgram.extendLookupTable({ ...owner, lookupTable: key, addresses }))
    },
  }
}
