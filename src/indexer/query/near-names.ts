import { foldName } from './sql-tokens.ts'

/** Longer names are not compared as a whole: the work grows with the product of the lengths. */
const COMPARED_LENGTH_MAX = 40

/** Up to `count` names of which few letters differ, the nearest first. */
export function nearNames(name: string, among: Iterable<string>, count: number): readonly string[] {
  const folded = foldName(name).slice(0, COMPARED_LENGTH_MAX)
  const limit = Math.max(2, Math.floor(folded.length / 3))
  return [...new Set(among)]
    .map((each) => ({ each, score: distance(folded, foldName(each).slice(0, COMPARED_LENGTH_MAX)) }))
    .filter(({ score }) => score <= limit)
    .sort((a, b) => a.score - b.score || (a.each < b.each ? -1 : 1))
    .slice(0, count)
    .map(({ each }) => each)
}

/** Number of letters to change, insert or remove. */
function distance(a: string, b: string): number {
  let row = Array.from({ length: b.length + 1 }, (_, at) => at)
  for (let i = 1; i <= a.length; i++) {
    const next = [i]
    for (let j = 1; j <= b.length; j++)
      next.push(
        Math.min(
          (row[j] as number) + 1,
          (next[j - 1] as number) + 1,
          (row[j - 1] as number) + (a[i - 1] === b[j - 1] ? 0 : 1),
        ),
      )
    row = next
  }
  return row[b.length] as number
}
