import { Buffer } from 'node:buffer'
import * as web3 from '@solana/web3.js'
import { MEMO_PROGRAM } from '../../../src/localnet/chain/addresses.ts'
import type { TestServer } from './rpc-server.ts'

export const SOL = 1_000_000_000

export type Context<T> = { context: { slot: number }; value: T }

export const key = (fill: number) => new web3.PublicKey(new Uint8Array(32).fill(fill))
export const base64 = (bytes: Uint8Array) => Buffer.from(bytes).toString('base64')

export type RpcWallet = Awaited<ReturnType<typeof openRpcWallet>>

/** A payer with 100 finalized SOL that signs and sends over JSON-RPC. */
export async function openRpcWallet(server: TestServer) {
  const payer = web3.Keypair.fromSeed(new Uint8Array(32).fill(1))
  await server.pass(1)
  await server.call('requestAirdrop', payer.publicKey.toBase58(), 100 * SOL)
  await server.pass(4)

  const recent = () => server.chain.latestBlockhash('processed').blockhash

  return {
    payer,
    recent,
    /** The wire bytes of a legacy transaction. */
    sign(instructions: web3.TransactionInstruction[], signer = payer, blockhash = recent()): Buffer {
      const transaction = new web3.Transaction({ feePayer: signer.publicKey, recentBlockhash: blockhash })
      transaction.add(...instructions)
      transaction.sign(signer)
      return transaction.serialize({ verifySignatures: false })
    },
    /** The same in version 0. */
    signV0(instructions: web3.TransactionInstruction[], tables: web3.AddressLookupTableAccount[] = []): Uint8Array {
      const message = new web3.TransactionMessage({
        payerKey: payer.publicKey,
        recentBlockhash: recent(),
        instructions,
      })
      const transaction = new web3.VersionedTransaction(message.compileToV0Message(tables))
      transaction.sign([payer])
      return transaction.serialize()
    },
    transfer(lamports: number, to = 50, from = payer): web3.TransactionInstruction {
      return web3.SystemProgram.transfer({ fromPubkey: from.publicKey, toPubkey: key(to), lamports })
    },
    memo(text: string | Uint8Array): web3.TransactionInstruction {
      const data = Buffer.from(text as string)
      return new web3.TransactionInstruction({ programId: new web3.PublicKey(MEMO_PROGRAM), keys: [], data })
    },
    send(wire: Uint8Array, config: object = {}): Promise<string> {
      return server.call<string>('sendTransaction', base64(wire), { encoding: 'base64', ...config })
    },
  }
}
