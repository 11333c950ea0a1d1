import { type Json, jsonFloat } from '../json.ts'

/** How a mint's amounts are displayed. At most one of the two extensions applies; interest takes precedence. */
export type TokenDisplay = {
  readonly decimals: number
  readonly interest?: InterestBearing | undefined
  readonly scale?: ScaledAmount | undefined
  /** Unix seconds of the bank's clock; needed by the two extensions only. */
  readonly unixTimestamp: number
}

export type InterestBearing = {
  readonly initializationTimestamp: number
  readonly preUpdateAverageRate: number
  readonly lastUpdateTimestamp: number
  readonly currentRate: number
}

export type ScaledAmount = {
  readonly multiplier: number
  readonly newMultiplierEffectiveTimestamp: number
  readonly newMultiplier: number
}

/** The object `{amount, decimals, uiAmount, uiAmountString}` of every token amount in Solana's JSON. */
export function encodeTokenAmount(amount: bigint, display: TokenDisplay): { readonly [member: string]: Json } {
  const { decimals } = display
  const shown = displayedAmount(amount, display)
  if (shown !== undefined) {
    return { amount: amount.toString(), decimals, uiAmount: jsonFloat(Number(shown)), uiAmountString: shown }
  }
  return {
    amount: amount.toString(),
    decimals,
    // Agave divides by 10^decimals in 64 bits and returns null where that overflows.
    uiAmount: decimals > 19 ? null : jsonFloat(Number(amount) / 10 ** decimals),
    uiAmountString: decimalText(amount, decimals),
  }
}

/** The exact decimal with trailing zeros removed. */
export function decimalText(amount: bigint, decimals: number): string {
  if (decimals === 0) return amount.toString()
  const digits = amount.toString().padStart(decimals + 1, '0')
  const integerPart = digits.slice(0, digits.length - decimals)
  const fraction = digits.slice(digits.length - decimals).replace(/0{1,256}$/, '')
  return fraction === '' ? integerPart : `${integerPart}.${fraction}`
}

// Token-2022 counts a year as 365.24 days.
const SECONDS_PER_YEAR = 60 * 60 * 24 * 365.24
const BASIS_POINTS = 10_000

function displayedAmount(
  amount: bigint,
  { decimals, interest, scale, unixTimestamp }: TokenDisplay,
): string | undefined {
  if (interest) {
    const before = exponent(
      interest.preUpdateAverageRate,
      interest.lastUpdateTimestamp - interest.initializationTimestamp,
    )
    const after = exponent(interest.currentRate, unixTimestamp - interest.lastUpdateTimestamp)
    return fixedTrimmed(Number(amount) * ((before * after) / 10 ** decimals), decimals)
  }
  if (scale) {
    const multiplier = unixTimestamp >= scale.newMultiplierEffectiveTimestamp ? scale.newMultiplier : scale.multiplier
    // The scaled raw amount is truncated before the decimal point is set.
    return fixedTrimmed(Math.trunc(Number(amount) * multiplier) / 10 ** decimals, decimals)
  }
  return undefined
}

function exponent(rate: number, seconds: number): number {
  return Math.exp((rate * seconds) / SECONDS_PER_YEAR / BASIS_POINTS)
}

function fixedTrimmed(value: number, decimals: number): string {
  if (!Number.isFinite(value)) return value > 0 ? 'inf' : '-inf'
  // toFixed uses exponents from 1e21.
  const text = Math.abs(value) < 1e21 ? value.toFixed(Math.min(decimals, 100)) : BigInt(Math.trunc(value)).toString()
  return text.includes('.') ? text.replace(/\.?0{1,100}$/, '') : text
}
