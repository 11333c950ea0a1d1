import assert from 'node:assert/strict'
import { test } from 'node:test'
import { signatureOf, TIP_ACCOUNTS, tipped, walletOf } from '../../../test/support/sender/start.ts'
import { createManualClock } from '../../core/clock.ts'
import { createSeededRandom } from '../../core/random.ts'
import { silentLogger } from '../../platform/telemetry/logger.ts'
import { encodeBase58 } from '../../solana/crypto/base58.ts'
import { parseSenderOptions } from '../options.ts'
import type { Receipt } from '../receipts/receipt.ts'
import { createReceipts } from '../receipts/receipts.ts'
import { createAccept } from './accept.ts'
import { decodeWire } from './decode.ts'
import { startSignatureVerifier } from './signature-verifier.ts'
import { tipTerms } from './tip-terms.ts'

const BLOCKHASH = encodeBase58(new Uint8Array(32).fill(3))

for (const [where, inLoopPerTurn] of [
  ['in the event loop', 12],
  ['outside of it', 0],
] as const) {
  test(`checked ${where}: a wrong signature is sent nowhere, charged to no payer, and does not make the real transaction a duplicate`, async () => {
    const clock = createManualClock()
    const deps = { clock, random: createSeededRandom(1), log: silentLogger }
    const options = parseSenderOptions({
      tipAccounts: TIP_ACCOUNTS,
      limits: { perPayerPerSecond: 1, perPayerBurst: 1 },
    })
    const sent: Receipt[] = []
    const journalled: Receipt[] = []
    using receipts = createReceipts({ ...options.limits, keepMs: 600_000 }, { clock, onSettled() {} })
    await using verifier = startSignatureVerifier(
      { threads: 0, checkingMax: 100, delayMsMax: 60_000, inLoopPerTurn },
      deps,
    )
    const accept = createAccept(options.limits, {
      ...tipTerms(options),
      receipts,
      clock,
      verifier,
      dispatch: { isOpen: true, paths: [], start: (receipt) => sent.push(receipt), [Symbol.dispose]() {} },
      landing: { check: () => undefined },
      journal: { isOpen: true, isDoubtful: false, recordAccepted: async (receipt) => journalled.push(receipt) > 0 },
      onDispatched() {},
      onNoPath() {},
    })
    const real = tipped(walletOf(0), BLOCKHASH, 'real')
    // The signature of the real transaction over other bytes, so that both have the same id.
    const forged = Uint8Array.from(real)
    forged[forged.length - 1] = (forged.at(-1) as number) ^ 1
    const outcomes = await Promise.all(
      [forged, real, forged].map(async (wire) => accept(() => decodeWire(wire), 'somebody')),
    )
    assert.deepEqual(
      outcomes.map((outcome) => (outcome.ok ? outcome : outcome.refusal.code)),
      ['signature-invalid', { ok: true, signature: signatureOf(real), isNew: true }, 'signature-invalid'],
    )
    assert.deepEqual([sent.length, journalled.length, receipts.size], [1, 1, 1])
    assert.deepEqual(sent[0]?.job?.wire, real)
  })
}
