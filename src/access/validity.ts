import type { TokenRefusal } from '../contract/errors.ts'
import { PRODUCT_KEYS, PRODUCTS, type ProductKey } from '../contract/products.ts'
import { recordOf } from '../core/records.ts'
import type { Customer, Subscription, Token } from './store/model.ts'

/** Tolerated clock difference: a token or subscription ends this much later. */
export const SKEW_MS = 60_000
/** The year 2106. */
export const NEVER_SECONDS = 2 ** 32

export const PRODUCT_BIT = recordOf(PRODUCT_KEYS, (_product, at) => 1 << at)

/** What a token stands for. */
export type TokenRecords = { readonly token: Token; readonly subscription: Subscription; readonly customer: Customer }

/** The first reason to refuse, the most final ones first. */
export function refusalOf(
  { token, subscription, customer }: TokenRecords,
  product: ProductKey,
  nowMs: number,
): TokenRefusal | undefined {
  if (subscription.state === 'cancelled') return 'cancelled'
  if (token.state === 'revoked') return 'revoked'
  if (token.state === 'retiring' && nowMs > endOf(token.notAfter)) return 'expired'
  if (nowMs > endOf(subscription.validUntil)) return 'expired'
  if (subscription.state === 'suspended' || customer.state !== 'active') return 'suspended'
  return includesProduct(subscription, product) ? undefined : 'not-in-plan'
}

function endOf(unixMs: number | null): number {
  return unixMs === null ? Number.POSITIVE_INFINITY : unixMs + SKEW_MS
}

/** A dedicated node is reached through the bundle's endpoints; products that are not provisioned are open to every valid token. */
export function includesProduct({ products }: Subscription, product: ProductKey): boolean {
  if (!PRODUCTS[product].provisioned || products.includes(product)) return true
  return product === 'bundle' && products.includes('dedicated-node')
}

/** One bit per product that a token of the subscription is valid for. */
export function productBitsOf(subscription: Subscription): number {
  return PRODUCT_KEYS.reduce(
    (bits, product) => (includesProduct(subscription, product) ? bits | PRODUCT_BIT[product] : bits),
    0,
  )
}

/** When the token stops being valid, in seconds of Unix time; at most `NEVER_SECONDS`. */
export function endSecondsOf(token: Token, subscription: Subscription): number {
  const tokenEnd = token.state === 'retiring' ? endOf(token.notAfter) : NEVER_SECONDS * 1000
  return Math.min(Math.ceil(Math.min(endOf(subscription.validUntil), tokenEnd) / 1000), NEVER_SECONDS)
}
