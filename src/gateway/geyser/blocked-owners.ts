import { Buffer } from 'node:buffer'

/** The owners that a plan does not allow, compared as bytes: a request of 100,000 accounts makes no text of each. */
export type BlockedOwners = {
  readonly isEmpty: boolean
  /** The owner that this range of the request names. */
  find(request: Buffer, from: number, to: number): string | undefined
}

export function createBlockedOwners(owners: readonly string[]): BlockedOwners {
  const byEnding = new Map<number, Buffer[]>()
  for (const owner of owners) {
    const bytes = Buffer.from(owner)
    const ending = endingOf(bytes, 0, bytes.length)
    byEnding.set(ending, [...(byEnding.get(ending) ?? []), bytes])
  }
  return {
    isEmpty: byEnding.size === 0,
    find(request, from, to) {
      return byEnding
        .get(endingOf(request, from, to))
        ?.find((owner) => owner.compare(request, from, to) === 0)
        ?.toString()
    },
  }
}

/** The last four bytes as a number. Addresses differ more at their end than at their start, which many have chosen. */
function endingOf(bytes: Buffer, from: number, to: number): number {
  return to - from < 4 ? 0 : bytes.readInt32LE(to - 4)
}
