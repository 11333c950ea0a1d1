import { ServiceError } from '../../core/error.ts'
import { decodeBase58, encodeBase58 } from '../../solana/crypto/base58.ts'
import { checkTip, type TipCheck, type TipRule } from '../../solana/transaction/tip.ts'
import type { ParsedTransaction } from '../../solana/transaction/types.ts'
import { decodeText, decodeWire } from './decode.ts'
import { type Refusal, refuseTip, refuseTipAbove, refuseUndecodable, type TipTerms } from './refusal.ts'

/**
 * A million SOL. A larger transfer is a mistake or cannot land; without a maximum one transaction, which costs its sender nothing, distorts the sums of a
 * day.
 */
export const TIP_LAMPORTS_MAX = 10 ** 15

/** The configured tip rule, as the check uses it (`rule`) and as refusals show it (`terms`). */
export function tipTerms(options: { readonly tipAccounts: readonly string[]; readonly minTipLamports: number }): {
  readonly rule: TipRule
  readonly terms: TipTerms
} {
  const { tipAccounts, minTipLamports } = options
  if (tipAccounts.length === 0) {
    throw new ServiceError('config-invalid', 'the sender has no tip account', {
      fix: 'Set sender.tipAccounts to at least one address, or start once without: sluice serve',
    })
  }
  return {
    rule: { accounts: tipAccounts.map((account) => decodeBase58(account)), minLamports: BigInt(minTipLamports) },
    terms: { tipAccounts, minTipLamports },
  }
}

export type Tip = Extract<TipCheck, { ok: true }>

/** The tip of the transaction, or why it is refused. */
export function findTip(
  transaction: ParsedTransaction,
  { rule, terms }: { readonly rule: TipRule; readonly terms: TipTerms },
): Tip | { readonly ok: false; readonly refusal: Refusal } {
  const tip = checkTip(transaction, rule)
  if (!tip.ok) return { ok: false, refusal: refuseTip(tip.fault, tip.foundLamports, terms) }
  if (tip.lamports <= TIP_LAMPORTS_MAX) return tip
  return { ok: false, refusal: refuseTipAbove(TIP_LAMPORTS_MAX, tip.lamports, terms) }
}

export type TipVerdict =
  | { readonly ok: true; readonly signature: string; readonly account: string; readonly lamports: string }
  | { readonly ok: false; readonly refusal: Refusal }

/** Checks the tip of a transaction given as base64, base58 or bytes. Does not check signatures and blockhash. */
export function validateTip(transaction: string | Uint8Array, options: Parameters<typeof tipTerms>[0]): TipVerdict {
  const decoded = typeof transaction === 'string' ? decodeText(transaction, undefined) : decodeWire(transaction)
  if (!decoded.ok) return { ok: false, refusal: refuseUndecodable(decoded) }
  const tip = findTip(decoded.transaction, tipTerms(options))
  if (!tip.ok) return tip
  return {
    ok: true,
    signature: encodeBase58(decoded.transaction.signatures[0] as Uint8Array),
    account: encodeBase58(tip.account),
    lamports: tip.lamports.toString(),
  }
}

/** The base58 address of a public key, for `processes`, which do not import `solana`. */
export function addressOf(publicKey: Uint8Array): string {
  return encodeBase58(publicKey)
}
