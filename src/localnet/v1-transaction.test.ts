import assert from 'node:assert/strict'
import { test } from 'node:test'
import { decodeBase58, encodeBase58 } from '../solana/crypto/base58.ts'
import { createSigningKey, signEd25519 } from '../solana/crypto/ed25519.ts'
import { startTestChain } from './test-chain.ts'

const alice = createSigningKey(new Uint8Array(32).fill(7))
const bob = new Uint8Array(32).fill(8)

/** A transfer in the format of SIMD-0385: message first, signatures last. */
function build(blockhash: string, config: { mask: number; values: number[] }): Uint8Array {
  const words = Buffer.alloc(config.values.length * 4)
  config.values.forEach((value, at) => words.writeUInt32LE(value, at * 4))
  const data = Buffer.alloc(12)
  data.writeUInt32LE(2, 0)
  data.writeBigUInt64LE(1_000_000n, 4)
  const message = Buffer.concat([
    Buffer.of(0x81, 1, 0, 1, config.mask, 0, 0, 0),
    decodeBase58(blockhash),
    Buffer.of(1, 3),
    ...[alice.publicKey, bob, new Uint8Array(32)],
    words,
    Buffer.of(2, 2, data.length, 0),
    Buffer.of(0, 1),
    data,
  ])
  return new Uint8Array(Buffer.concat([message, signEd25519(message, alice)]))
}

test('a v1 transaction lands and pays its priority fee; one that requests no compute is refused', async () => {
  await using host = await startTestChain()
  const { chain } = host
  assert((await chain.airdrop(encodeBase58(alice.publicKey), 1_000_000_000n)).ok)
  await chain.produceBlock()
  const { blockhash } = chain.latestBlockhash('processed')
  // Bits 0 and 1: priority fee as u64; 2: compute limit; 3: loaded data.
  const full = { mask: 0b1111, values: [777, 0, 10_000, 100_000] }
  const outcome = await chain.submit(build(blockhash, full))
  assert(outcome.ok, JSON.stringify(outcome))
  await chain.produceBlock()
  const meta = chain.transaction(outcome.signature)?.meta
  assert.equal(meta?.err, null)
  assert.equal(meta?.fee, 5777n)
  assert.equal(chain.account(encodeBase58(alice.publicKey), 'processed')?.lamports, 1_000_000_000n - 1_000_000n - 5777n)

  for (const config of [
    { mask: 0, values: [] },
    { mask: 0b0100, values: [10_000] },
    { mask: 0b1000, values: [100_000] },
  ]) {
    assert.deepEqual(await chain.submit(build(blockhash, config)), {
      ok: false,
      reason: 'rejected',
      err: 'SanitizeFailure',
    })
  }
})
