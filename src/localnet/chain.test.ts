import assert from 'node:assert/strict'
import { test } from 'node:test'
import { encodeBase58 } from '../solana/base58.ts'
import { createSigningKey } from '../solana/ed25519.ts'
import { startTestChain } from './testing.ts'

const alice = createSigningKey(new Uint8Array(32).fill(7))
const aliceText = encodeBase58(alice.publicKey)

test('an airdrop lands in the open slot and shows at each commitment in its turn', async () => {
  await using host = await startTestChain()
  const { chain, clock } = host
  const events: string[] = []
  chain.subscribe((event) => events.push(`${event.kind} ${'slot' in event ? event.slot : event.block.slot}`))
  assert.equal(chain.slot('processed'), 0)
  assert.equal(chain.openSlot(), 1)

  const outcome = await chain.airdrop(aliceText, 1_000_000_000n)
  assert(outcome.ok)
  assert.equal(chain.account(aliceText, 'processed'), null)
  clock.advance(400)
  assert.equal(chain.slot('processed'), 1)
  assert.equal(chain.account(aliceText, 'processed')?.lamports, 1_000_000_000n)
  assert.equal(chain.account(aliceText, 'confirmed'), null)
  clock.advance(400)
  assert.equal(chain.account(aliceText, 'confirmed')?.lamports, 1_000_000_000n)
  assert.equal(chain.account(aliceText, 'finalized'), null)
  clock.advance(400 * 30)
  assert.equal(chain.account(aliceText, 'finalized')?.lamports, 1_000_000_000n)
  const record = chain.transaction(outcome.signature)
  assert.equal(record?.slot, 1)
  assert.equal(record?.meta.err, null)
})
