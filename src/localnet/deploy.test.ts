import assert from 'node:assert/strict'
import { test } from 'node:test'
import {
  Keypair,
  PublicKey,
  SYSVAR_CLOCK_PUBKEY,
  SYSVAR_RENT_PUBKEY,
  SystemProgram,
  Transaction,
  TransactionInstruction,
} from '@solana/web3.js'
import { until } from '../platform/process/test-wait.ts'
import { MEMO_PROGRAM, UPGRADEABLE_LOADER } from './chain/addresses.ts'
import { startTestChain } from './test-chain.ts'

const loader = new PublicKey(UPGRADEABLE_LOADER)
const [alice, buffer, program] = [1, 2, 3].map((n) => Keypair.fromSeed(new Uint8Array(32).fill(n))) as [
  Keypair,
  Keypair,
  Keypair,
]
const CHUNK_BYTES = 900

/** Instructions of the upgradeable loader (`loader-v3-interface`): 0 initialize buffer, 1 write, 2 deploy. */
function call(
  number: number,
  fields: (number | bigint | Uint8Array)[],
  keys: [PublicKey, 'signer' | 'writable' | 'both' | 'read'][],
) {
  const parts = fields.map((field) => {
    if (field instanceof Uint8Array) return Buffer.from(field)
    const bytes = Buffer.alloc(typeof field === 'bigint' ? 8 : 4)
    if (typeof field === 'bigint') bytes.writeBigUInt64LE(field)
    else bytes.writeUInt32LE(field)
    return bytes
  })
  const data = Buffer.concat([Buffer.of(number, 0, 0, 0), ...parts])
  const metas = keys.map(([pubkey, role]) => ({
    pubkey,
    isSigner: role === 'signer' || role === 'both',
    isWritable: role === 'writable' || role === 'both',
  }))
  return new TransactionInstruction({ programId: loader, keys: metas, data })
}

test('a program deployed by transactions runs from the next slot, also after an engine restart', async () => {
  await using host = await startTestChain()
  const { chain, clock } = host
  assert((await chain.airdrop(alice.publicKey.toBase58(), 10n ** 11n)).ok)
  const elf = chain.account(MEMO_PROGRAM, 'processed')?.data as Uint8Array

  async function send(instructions: TransactionInstruction[], signers = [alice]) {
    const { blockhash } = chain.latestBlockhash('processed')
    const transaction = new Transaction({ feePayer: alice.publicKey, blockhash, lastValidBlockHeight: 1 }).add(
      ...instructions,
    )
    transaction.sign(...signers)
    const outcome = await chain.submit(new Uint8Array(transaction.serialize()))
    assert(outcome.ok, JSON.stringify(outcome))
    await chain.produceBlock()
    return chain.transaction(outcome.signature)?.meta
  }
  const create = (account: Keypair, space: number) =>
    SystemProgram.createAccount({
      fromPubkey: alice.publicKey,
      newAccountPubkey: account.publicKey,
      lamports: Number(chain.minimumBalance(space)),
      space,
      programId: loader,
    })

  const initialize = call(
    0,
    [],
    [
      [buffer.publicKey, 'writable'],
      [alice.publicKey, 'read'],
    ],
  )
  assert.equal((await send([create(buffer, 37 + elf.length), initialize], [alice, buffer]))?.err, null)
  for (let at = 0; at < elf.length; at += CHUNK_BYTES) {
    const chunk = elf.subarray(at, at + CHUNK_BYTES)
    await send([
      call(
        1,
        [at, BigInt(chunk.length), chunk],
        [
          [buffer.publicKey, 'writable'],
          [alice.publicKey, 'signer'],
        ],
      ),
    ])
  }
  const [programData] = PublicKey.findProgramAddressSync([program.publicKey.toBytes()], loader)
  const deploy = call(
    2,
    [BigInt(elf.length * 2)],
    [
      [alice.publicKey, 'both'],
      [programData, 'writable'],
      [program.publicKey, 'writable'],
      [buffer.publicKey, 'writable'],
      [SYSVAR_RENT_PUBKEY, 'read'],
      [SYSVAR_CLOCK_PUBKEY, 'read'],
      [SystemProgram.programId, 'read'],
      [alice.publicKey, 'signer'],
    ],
  )
  assert.equal((await send([create(program, 36), deploy], [alice, program]))?.err, null)
  assert.equal(chain.account(program.publicKey.toBase58(), 'processed')?.executable, true)

  const hello = (text: string) =>
    send([new TransactionInstruction({ programId: program.publicKey, keys: [], data: Buffer.from(text) })])
  assert((await hello('deployed'))?.logMessages.includes('Program log: deployed'))
  process.kill(chain.enginePid() as number, 'SIGKILL')
  await until('the engine has exited', () => chain.enginePid() === undefined)
  clock.advance(400)
  assert((await hello('replaced'))?.logMessages.includes('Program log: replaced'))
})
