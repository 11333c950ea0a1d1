export function printTime(ms: number): string {
  return new Date(ms).toISOString().replace('T', ' ').slice(0, 19)
}

export function printDay(ms: number): string {
  return new Date(ms).toISOString().slice(0, 10)
}

/** The last day of a subscription, given the end of that day. */
export function printUntil(validUntil: number | null): string {
  return validUntil === null ? 'no end' : printDay(validUntil - 1)
}
