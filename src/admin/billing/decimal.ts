/** Digits after the point that a price can have. Amounts are whole numbers of 10^-9, never floating point. */
export const DECIMAL_DIGITS = 9

export const DECIMAL = /^(0|[1-9]\d{0,11})(\.\d{1,9})?$/

/** `12.5` as 12500000000. The text matches `DECIMAL`. */
export function parseDecimal(text: string): bigint {
  const [whole = '0', fraction = ''] = text.split('.')
  return BigInt(whole + fraction.padEnd(DECIMAL_DIGITS, '0'))
}

/** `value * times / by`, rounded to this number of digits after the point; a half is rounded away from zero. */
export function scaleDecimal(value: bigint, { times, by }: { times: bigint; by: bigint }, digits: number): bigint {
  const step = 10n ** BigInt(DECIMAL_DIGITS - digits)
  const exact = value * times
  const divisor = by * step
  const half = exact < 0n ? -divisor : divisor
  return ((exact * 2n + half) / (divisor * 2n)) * step
}

/** With exactly this number of digits after the point; further digits of the value are zero. */
export function printDecimal(value: bigint, digits: number): string {
  const text = (value < 0n ? -value : value).toString().padStart(DECIMAL_DIGITS + 1, '0')
  const whole = text.slice(0, -DECIMAL_DIGITS)
  const fraction = text.slice(-DECIMAL_DIGITS).slice(0, digits)
  return `${value < 0n ? '-' : ''}${whole}${digits === 0 ? '' : `.${fraction}`}`
}
