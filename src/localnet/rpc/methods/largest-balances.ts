const LARGEST_MAX = 20

type Balance = { readonly address: string; readonly amount: bigint }

/** The 20 largest balances in the order of Agave, whose heap compares amount and address: among equal amounts the greater address is first. */
export function takeLargest(balances: Iterable<Balance>): Balance[] {
  const largest: Balance[] = []
  for (const balance of balances) {
    const least = largest[LARGEST_MAX - 1]
    if (least && !isLarger(balance, least)) continue
    const position = largest.findIndex((other) => isLarger(balance, other))
    largest.splice(position < 0 ? largest.length : position, 0, balance)
    largest.length = Math.min(largest.length, LARGEST_MAX)
  }
  return largest
}

function isLarger(a: Balance, b: Balance): boolean {
  return a.amount === b.amount ? isGreaterKey(a.address, b.address) : a.amount > b.amount
}

/**
 * Whether the bytes of the first address are greater. Both are numbers of 32 bytes in a notation whose digits ascend as characters do: the longer one
 * without leading zeros is greater. Decoding thousands of them would hold the event loop.
 */
function isGreaterKey(a: string, b: string): boolean {
  const [first, second] = [a.replace(LEADING_ZEROS, ''), b.replace(LEADING_ZEROS, '')]
  return first.length === second.length ? first > second : first.length > second.length
}

/** The digit 0 of base58. */
const LEADING_ZEROS = /^1+/
