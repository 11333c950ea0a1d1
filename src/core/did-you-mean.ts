/** Longer words are not compared. */
const WORD_CHARS_MAX = 64

/** The known word nearest to the given one, if it is near enough for a suggestion. */
export function didYouMean(written: string, known: Iterable<string>): string | undefined {
  const word = written.toLowerCase()
  if (word.length > WORD_CHARS_MAX) return undefined
  let best: string | undefined
  // One edit in short words, up to a third of the letters in long ones.
  let bestDistance = Math.max(1, Math.floor(word.length / 3)) + 1
  for (const candidate of known) {
    if (candidate.length > WORD_CHARS_MAX) continue
    const distance = editDistance(word, candidate.toLowerCase())
    if (distance < bestDistance) {
      best = candidate
      bestDistance = distance
    }
  }
  return best
}

/** Damerau-Levenshtein distance: insertions, deletions, substitutions and swaps of neighbours. */
export function editDistance(from: string, to: string): number {
  let beforeLast: number[] = []
  let last = Array.from({ length: to.length + 1 }, (_, at) => at)
  for (let row = 1; row <= from.length; row++) {
    const current = [row]
    for (let column = 1; column <= to.length; column++) {
      const same = from[row - 1] === to[column - 1]
      let distance = Math.min(
        (last[column] as number) + 1,
        (current[column - 1] as number) + 1,
        (last[column - 1] as number) + (same ? 0 : 1),
      )
      const swapped = row > 1 && column > 1 && from[row - 1] === to[column - 2] && from[row - 2] === to[column - 1]
      if (swapped) distance = Math.min(distance, (beforeLast[column - 2] as number) + 1)
      current.push(distance)
    }
    beforeLast = last
    last = current
  }
  return last[to.length] as number
}
