import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import { systemClock } from '../../src/platform/process/clock.ts'
import { decodeBase58, encodeBase58 } from '../../src/solana/crypto/base58.ts'
import type { SigningKey } from '../../src/solana/crypto/ed25519.ts'
import { buildLegacyMessage, type Instruction, signMessage } from '../../src/solana/transaction/build.ts'
import { startFakeNode } from '../faults/fake-node.ts'
import {
  fund,
  MIN_TIP,
  sign,
  signatureOf,
  startChainAndSender,
  startTestSender,
  tipInstruction,
  tipped,
  walletOf,
} from '../support/sender/start.ts'
import { advanceNonce, createNonce } from '../support/solana/nonce.ts'

const [FUNDED, EMPTY, NONCE, STRANGER] = [walletOf(0), walletOf(1), walletOf(2), walletOf(3)]
const ZERO_HASH = encodeBase58(new Uint8Array(32))
const FEE = 5000n

describe('refuses transactions that cannot land', () => {
  let chain: Awaited<ReturnType<typeof startChainAndSender>>
  before(async () => {
    chain = await startChainAndSender({ limits: { perAddressPerSecond: 1000, perAddressBurst: 1000 } })
  })
  after(() => chain[Symbol.asyncDispose]())
  const codeOf = async (wire: Uint8Array) => (await chain.sender.send(wire)).error?.code
  const accepted = () => chain.sender.sender.stats().accepted

  test('a payer without lamports is refused with -32044, and accepted soon after it is funded', async () => {
    const { status, error } = await chain.sender.send(tipped(EMPTY, chain.blockhash(), 'unpaid'))
    const payer = encodeBase58(EMPTY.publicKey)
    assert.deepEqual([status, error?.code], [200, -32044])
    const { payer: named, lamports, requiredLamports, reason } = error?.data ?? {}
    assert.deepEqual([named, lamports, requiredLamports, reason], [payer, 0, 1_005_000, 'not-found'])
    assert.equal(accepted(), 0)

    await fund(chain.localnet, payer, FEE + MIN_TIP + 1_000_000n)
    const fundedMs = systemClock.monotonicMs()
    let code: number | undefined
    do code = await codeOf(tipped(EMPTY, chain.blockhash(), 'paid'))
    while (code === -32044 && systemClock.monotonicMs() - fundedMs < 5000)
    assert.equal(code, undefined, 'the refusal is forgotten within seconds')
    assert.equal(accepted(), 1)
  })

  test('a payer that can pay the fee but not the tip is refused', async () => {
    const poor = walletOf(7)
    await fund(chain.localnet, encodeBase58(poor.publicKey), 900_000n)
    const { error } = await chain.sender.send(tipped(poor, chain.blockhash(), 'poor'))
    assert.deepEqual([error?.code, error?.data['lamports'], error?.data['reason']], [-32044, 900_000, 'lamports'])
  })

  test('an invented nonce is refused with -32045, whatever account it names', async () => {
    const before = accepted()
    const cases: [string, SigningKey, string][] = [
      ['an account that does not exist', STRANGER, 'not-found'],
      ['an account that is a wallet', FUNDED, 'not-a-nonce'],
    ]
    for (const [what, account, reason] of cases) {
      const keys = { account: account.publicKey, authority: FUNDED.publicKey }
      const { error } = await chain.sender.send(sign(FUNDED, ZERO_HASH, [advanceNonce(keys), tipInstruction(FUNDED)]))
      assert.deepEqual([error?.code, error?.data['reason']], [-32045, reason], what)
    }
    assert.equal(accepted(), before)
  })

  test('a durable nonce: accepted with its value and authority, refused with another value or authority', async () => {
    const keys = { account: NONCE.publicKey, authority: FUNDED.publicKey }
    const create = signed([FUNDED, NONCE], chain.blockhash(), [
      ...createNonce(keys, FUNDED.publicKey, 10_000_000n),
      tipInstruction(FUNDED),
    ])
    assert.equal(await codeOf(create), undefined)
    assert.equal((await chain.sender.receipt(signatureOf(create), '?wait=20')).body.state, 'landed')

    const address = encodeBase58(NONCE.publicKey)
    const stored = chain.localnet.chain.account(address, 'processed')?.data.slice(40, 72) as Uint8Array
    const nonce = encodeBase58(stored)
    const advance = [advanceNonce(keys), tipInstruction(FUNDED)]
    const refusal = async (wire: Uint8Array) => {
      const { error } = await chain.sender.send(wire)
      return [error?.code, error?.data['reason'], error?.data['nonceAccount']]
    }
    assert.deepEqual(await refusal(sign(FUNDED, ZERO_HASH, advance)), [-32045, 'value', address])
    const unsigned = [advanceNonce(keys, false), tipInstruction(STRANGER)]
    await fund(chain.localnet, encodeBase58(STRANGER.publicKey), 1_000_000_000n)
    assert.deepEqual(await refusal(sign(STRANGER, nonce, unsigned)), [-32045, 'authority', address])

    const good = sign(FUNDED, nonce, advance)
    assert.equal(await codeOf(good), undefined)
    assert.equal((await chain.sender.receipt(signatureOf(good), '?wait=20')).body.state, 'landed')
  })

  test('a nonce instruction beside a recent blockhash is an ordinary transaction', async () => {
    const keys = { account: STRANGER.publicKey, authority: FUNDED.publicKey }
    const wire = sign(FUNDED, chain.blockhash(), [advanceNonce(keys), tipInstruction(FUNDED)])
    assert.equal(await codeOf(wire), undefined)
  })

  test('a nonce instruction on a read-only account requires a fresh blockhash', async () => {
    const advance = advanceNonce({ account: STRANGER.publicKey, authority: FUNDED.publicKey })
    const accounts = advance.accounts.map((account) => ({ ...account, writable: false }))
    assert.equal(await codeOf(sign(FUNDED, ZERO_HASH, [{ ...advance, accounts }, tipInstruction(FUNDED)])), -32043)
  })
})

test('accepts the transaction when the node cannot read accounts', async () => {
  await using node = await startFakeNode()
  await using sender = await startTestSender({ nodes: [{ name: 'a', rpc: node.rpc }] })
  const response = await sender.send(tipped(EMPTY, ZERO_HASH, 'unknown'))
  assert.equal(response.error, undefined, response.text)
  assert.ok(node.calls.some(({ method }) => method === 'getMultipleAccounts'))
})

function signed(signers: readonly SigningKey[], blockhash: string, instructions: readonly Instruction[]): Uint8Array {
  const [payer] = signers as [SigningKey]
  const recentBlockhash = decodeBase58(blockhash)
  return signMessage(buildLegacyMessage({ feePayer: payer.publicKey, recentBlockhash, instructions }), signers)
}
